-- finish_sweep: end the hiding of an erased person's ids, and note what was removed.
--
-- A new life that has begun meanwhile is seen from now on, unless it was hidden or banned itself.
CREATE OR REPLACE FUNCTION truerank.finish_sweep(p_erasure truerank.erasure) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_logged truerank.member_state[];
    v_changed truerank.changed[];
    v_names text[];
BEGIN
    -- A freeze may have copied what was late.
    WITH gone AS (
        DELETE FROM truerank.standing AS s USING truerank.ranking AS r
        WHERE r.kind = 'frozen' AND s.ranking = r.id AND s.member = ANY (p_erasure.names)
        RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
    )
    SELECT array_agg((g.*)::truerank.changed) INTO v_changed FROM gone AS g;
    PERFORM truerank.log_by_board(v_changed);
    -- Another erasure of the same id, which came later, may have yet to end.
    v_names := ARRAY(
        SELECT n FROM unnest(p_erasure.names) AS n
        WHERE NOT EXISTS (SELECT FROM truerank.erasure AS e
                          WHERE e.id <> p_erasure.id AND e.swept_xid IS NULL
                            AND n = ANY (e.names)));
    WITH gone AS (
        DELETE FROM truerank.member_state AS s
        WHERE s.member = ANY (v_names)
          AND (s.board_id <> 0 AND s.state = 'deleted'
               OR s.board_id = 0 AND s.erasing AND s.state = 'hidden' AND NOT s.hides)
        RETURNING s.board_id, s.member, 'active', s.until, s.hides,
                  nextval('truerank.version'), s.changed_at, false
    )
    SELECT array_agg((g.*)::truerank.member_state) INTO v_logged FROM gone AS g;
    PERFORM truerank.log_states(v_logged);
    UPDATE truerank.member_state AS s SET erasing = false
    WHERE s.member = ANY (v_names) AND s.erasing;
    DELETE FROM truerank.member AS m
    WHERE m.id = ANY (p_erasure.names) AND m.merged_into IS NULL AND m.display_name IS NULL
      AND m.profile IS NULL;
    UPDATE truerank.erasure AS e SET
        swept_xid = pg_current_xact_id(), swept_at = clock_timestamp(), events = d.events,
        digest = d.digest
    FROM (
        SELECT count(*) AS events,
               sha256(coalesce(string_agg(
                   int4send(x.board_id) || int8send(x.position) || int8send(x.value)
                   || int8send(truerank.instant_us(x.occurred_at)), ''::bytea
                   ORDER BY x.board_id, x.position), '')) AS digest
        FROM truerank.board AS b JOIN truerank.event AS x ON x.board_id = b.id
        WHERE x.member = ANY (p_erasure.stand_ins)
    ) AS d
    WHERE e.id = p_erasure.id;
END
$$;
