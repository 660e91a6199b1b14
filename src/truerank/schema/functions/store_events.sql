-- store_events: insert the events that are new, and tell what the others really are.
--
-- A repeat is looked up in a second statement: the snapshot of the insert can't see a winner that
-- committed meanwhile. If it isn't there either, the winner was rolled back, and the insert is
-- tried again; at most three times, for each needs another caller to vanish at that moment.
-- A refused event is looked up too: what was accepted once stays a duplicate whatever the rules
-- say today. A later event of the same batch (it has a later position) doesn't count for that;
-- another transaction's may have drawn its position later and still have come first.
-- Raises:  serialization_failure after the third try.
CREATE OR REPLACE FUNCTION truerank.store_events(
    p_board truerank.board, p_event truerank.prepared_events, p_members text[],
    p_occurred_at timestamptz[], p_ties bigint[],
    p_metadata jsonb[], p_source text
) RETURNS truerank.stored_events
LANGUAGE plpgsql AS $$
DECLARE
    v_done truerank.stored_events;
    v_tie_n integer := cardinality(p_board.tie_names);
    v_xid xid8 := pg_current_xact_id();
    v_new bigint[];
    v_missing integer;
BEGIN
    v_done.xid := v_xid;
    v_done.stored_n := 0;
    FOR v_try IN 1..3 LOOP
        WITH stored AS (
            INSERT INTO truerank.event
                (board_id, event_uuid, event_text, member, value, ties, occurred_at,
                 occurred_given, received_at, position, xid, metadata, source)
            SELECT p_board.id, u.uuid, u.text, u.member, u.value,
                   CASE WHEN v_tie_n > 0 THEN p_ties[(u.ord - 1) * v_tie_n + 1 : u.ord * v_tie_n]
                   END,
                   u.at, u.given IS NOT NULL, p_event.received_at, u.position, v_xid, u.metadata,
                   p_source
            FROM unnest(p_event.texts, p_event.uuids, p_members, p_event.values, p_occurred_at,
                        p_event.at, p_event.positions, p_event.codes, p_metadata)
                WITH ORDINALITY AS u (text, uuid, member, value, given, at, position, code,
                                      metadata, ord)
            WHERE u.code IS NULL
            ORDER BY u.uuid, u.position
            ON CONFLICT (board_id, event_uuid) DO NOTHING
            RETURNING position
        )
        SELECT array_agg(s.position) INTO v_new FROM stored AS s;
        v_done.stored_n := v_done.stored_n + coalesce(cardinality(v_new), 0);
        v_done.stored := v_done.stored || v_new;
        IF v_done.stored_n = cardinality(p_members) THEN
            RETURN v_done;
        END IF;

        SELECT array_agg(f.outcome ORDER BY u.ord), array_agg(f.xid ORDER BY u.ord),
               array_agg(f.at ORDER BY u.ord),
               count(*) FILTER (WHERE u.code IS NULL AND f.outcome IS NULL)
        INTO v_done.outcomes, v_done.xids, v_done.first_at, v_missing
        FROM unnest(p_event.texts, p_event.uuids, p_members, p_event.values, p_occurred_at,
                    p_event.positions, p_event.codes, p_metadata)
            WITH ORDINALITY AS u (text, uuid, member, value, given, position, code, metadata,
                                  ord)
        LEFT JOIN LATERAL (
            SELECT CASE
                WHEN e.position = u.position THEN 'applied'
                WHEN e.kind = 's'
                     AND e.event_text IS NOT DISTINCT FROM u.text
                     AND e.member = u.member AND e.value = u.value
                     AND e.occurred_given = (u.given IS NOT NULL)
                     AND (u.given IS NULL OR e.occurred_at = u.given)
                     AND e.metadata IS NOT DISTINCT FROM u.metadata
                     AND e.ties IS NOT DISTINCT FROM CASE WHEN v_tie_n > 0 THEN
                         p_ties[(u.ord - 1) * v_tie_n + 1 : u.ord * v_tie_n] END
                     THEN 'duplicate'
                ELSE 'conflict' END AS outcome, e.xid, e.occurred_at AS at
            FROM truerank.event AS e
            WHERE e.board_id = p_board.id AND e.event_uuid = u.uuid
              AND (e.position <= u.position OR e.xid <> v_xid)
              AND (e.kind <> 'f' OR u.code IS NULL)  -- nothing is known of it but the id
        ) AS f ON true;
        IF v_missing = 0 THEN
            RETURN v_done;
        END IF;
    END LOOP;
    RAISE serialization_failure USING MESSAGE =
        'an event id was taken and freed by other transactions three times; retry';
END
$$;
