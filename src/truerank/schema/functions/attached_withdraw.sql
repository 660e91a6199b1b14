-- attached_withdraw: void the events of rows that changed or went, where nothing refuses it.
--
-- Standings of all events concerned, old and new, are locked first and in one order: the void and
-- what is submitted in its place are two calls, and would lock in two orders. (A standing that
-- vanishes and comes back meanwhile isn't held: then 40P01 is possible, as with any two updates.)
-- Returns: the items; withdrawn where the last revision is void on our account, an outcome where
--          the item is done with: voided (nothing counts for it), or refused with season_final,
--          event_void (a person voided the event, and that stays) and the like.
CREATE OR REPLACE FUNCTION truerank.attached_withdraw(
    p_attachment truerank.attachment, p_key text, p_item truerank.attached_item[],
    p_actor text, p_reason text
) RETURNS truerank.attached_item[]
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board := truerank.lock_board(p_key);
    v_uuids uuid[];
    v_ids text[];
    v_members text[];
    v_at timestamptz[];
    v_runs truerank.season_run[];
    v_item truerank.attached_item[];
BEGIN
    SELECT array_agg(e.member), array_agg(e.at) INTO v_members, v_at FROM (
        SELECT e.member, e.occurred_at AS at
        FROM unnest(p_item) AS i
        JOIN truerank.event AS e ON e.board_id = p_attachment.board_id
         AND e.event_uuid = truerank.event_uuid(
                 truerank.attached_id((i.fact).event_id, i.last))
        UNION ALL
        SELECT (i.fact).member, coalesce((i.fact).occurred_at, clock_timestamp())
        FROM unnest(p_item) AS i WHERE (i.fact).member IS NOT NULL
    ) AS e
    -- An event that the board refused for its time has no standing to lock.
    WHERE e.at BETWEEN v_board.earliest_at AND clock_timestamp() + v_board.future_max;
    v_runs := truerank.season_runs(ARRAY(
        SELECT s FROM truerank.seasons_of(v_board, v_at) AS s));
    PERFORM FROM truerank.standing AS s
    JOIN (SELECT DISTINCT r.ranking, truerank.owner_of(e.member) AS member
          FROM unnest(v_members, v_at) AS e (member, at)
          CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r) AS g
      ON s.ranking = g.ranking AND s.member = g.member
    ORDER BY s.ranking, s.member
    FOR UPDATE OF s;

    -- Twice the same id may come among the new facts; it is one event to void.
    SELECT array_agg(i.uuid ORDER BY i.ord), array_agg(i.id ORDER BY i.ord) INTO v_uuids, v_ids
    FROM (SELECT DISTINCT ON (i.uuid) i.uuid, i.ord,
                 truerank.attached_id((i.fact).event_id, i.last) AS id
          FROM unnest(p_item) AS i
          WHERE i.action <> 'submit' AND i.outcome IS NULL ORDER BY i.uuid, i.ord) AS i;
    WITH receipt AS MATERIALIZED (
        SELECT DISTINCT ON (v.ord) v.ord, v.outcome, v.code
        FROM truerank.void_events(p_key, coalesce(v_ids, '{}'), p_actor, p_reason) AS v
    ), void AS MATERIALIZED (
        SELECT u.uuid, v.outcome, v.code
        FROM unnest(v_uuids) WITH ORDINALITY AS u (uuid, ord)
        JOIN receipt AS v ON v.ord = u.ord
    ), noted AS (
        UPDATE truerank.revision AS r SET withdrawn = true
        FROM void AS v
        WHERE r.board_id = p_attachment.board_id AND r.event_uuid = v.uuid
          AND v.outcome = 'applied'
    )
    SELECT array_agg((i.ord, i.fact, i.uuid, i.action, i.last,
            i.withdrawn OR v.outcome IS NOT DISTINCT FROM 'applied', NULL, NULL, j.outcome,
            CASE WHEN i.outcome IS NOT NULL THEN i.code
                 WHEN j.outcome = 'refused' THEN coalesce(v.code, 'event_void') END
            )::truerank.attached_item ORDER BY i.ord)
    INTO v_item
    FROM unnest(p_item) AS i
    LEFT JOIN void AS v ON v.uuid = i.uuid AND i.action <> 'submit'
    CROSS JOIN LATERAL (SELECT CASE
        WHEN i.outcome IS NOT NULL THEN i.outcome
        WHEN v.outcome = 'conflict' THEN 'refused'
        WHEN v.code IS NOT NULL AND v.code <> 'event_unknown' THEN 'refused'
        WHEN i.action = 'void' THEN 'voided'
        WHEN i.action = 'correct' AND v.outcome = 'duplicate' AND NOT i.withdrawn THEN 'refused'
        END AS outcome) AS j;
    -- Once the event is forgotten and its row has another time, nothing would tell that it counts:
    -- a revision that there is not says so from now on.
    UPDATE truerank.revision AS r SET
        last = coalesce(truerank.free_revision(r.board_id, (i.fact).event_id, 0), 0)
    FROM unnest(v_item) AS i
    WHERE r.board_id = p_attachment.board_id AND r.event_uuid = i.uuid AND r.last = 0
      AND i.action <> 'submit' AND i.code = 'history_incomplete';
    RETURN v_item;
END
$$;
