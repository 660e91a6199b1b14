-- end_late_events: let events of an erased person count no longer that were under way back then.
--
-- Standings are computed from what is left. p_anyway: compute them though there are none, because
-- a transaction may have counted events of one id for another that it had been merged into.
-- Returns: whether there were any.
CREATE OR REPLACE FUNCTION truerank.end_late_events(p_erasure truerank.erasure, p_anyway boolean)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_rankings bigint[];
    v_late boolean;
    v_board truerank.board;
    v_seasons truerank.season[];
    v_changed truerank.changed[];
    v_name text;
BEGIN
    v_late := EXISTS (
        SELECT FROM truerank.board AS b
        CROSS JOIN LATERAL unnest(p_erasure.names) AS n (name)
        CROSS JOIN LATERAL (
            SELECT FROM truerank.event AS e
            WHERE e.board_id = b.id AND e.member = n.name AND e.xid < p_erasure.began_xid
            ORDER BY e.occurred_at LIMIT 1) AS e);
    IF NOT (v_late OR p_anyway) THEN
        RETURN false;
    END IF;
    FOREACH v_name IN ARRAY p_erasure.names LOOP
        PERFORM truerank.lock_boards_of(v_name, 0);
    END LOOP;
    v_rankings := ARRAY(
        SELECT DISTINCT r FROM unnest(p_erasure.names) AS n
        CROSS JOIN LATERAL truerank.member_rankings(n, 0) AS r ORDER BY r);
    UPDATE truerank.event AS e SET ended_at = clock_timestamp()
    WHERE e.board_id IN (SELECT r >> 36 FROM unnest(v_rankings) AS r)
      AND e.member = ANY (p_erasure.names) AND e.xid < p_erasure.began_xid
      AND e.ended_at IS NULL;
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE b.id IN (SELECT r >> 36 FROM unnest(v_rankings) AS r) ORDER BY b.id
    LOOP
        SELECT array_agg(s ORDER BY s.ranking) INTO v_seasons
        FROM unnest(v_rankings) AS r
        CROSS JOIN LATERAL truerank.season_of_ranking(v_board, r) AS s
        WHERE r >> 36 = v_board.id AND s.ends_at > v_board.history_from;
        CONTINUE WHEN v_seasons IS NULL;
        SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
            v_board, v_seasons,
            ARRAY(SELECT s.ranking FROM unnest(v_seasons) AS s, unnest(p_erasure.names) AS n
                  ORDER BY s.ranking, n),
            ARRAY(SELECT n FROM unnest(v_seasons) AS s, unnest(p_erasure.names) AS n
                  ORDER BY s.ranking, n)) AS c;
        PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed);
    END LOOP;
    FOREACH v_name IN ARRAY p_erasure.names LOOP
        PERFORM truerank.refold_member(truerank.owner_of(v_name));
    END LOOP;
    PERFORM truerank.forget_names(p_erasure.names, p_erasure.stand_ins, false);
    RETURN v_late;
END
$$;
