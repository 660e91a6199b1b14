-- refold_member: compute all standings of a member from its events and those merged into it.
--
-- Standings that still stand under a merged id go. Seasons that ended before a board's history
-- begins stay as they are: their events are forgotten. What no event of any season changed stays the
-- same but for its version.
-- Locks:   the boards' advisory locks (shared), standings by ranking and member, events read later.
-- Raises:  25001 above READ COMMITTED; numeric_value_out_of_range where a total leaves its range.
CREATE OR REPLACE FUNCTION truerank.refold_member(p_member text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[] := truerank.names_of(p_member);
    v_rankings bigint[];
    v_board truerank.board;
    v_seasons truerank.season[];
    v_changed truerank.changed[];
    v_gone truerank.changed[];
BEGIN
    PERFORM truerank.need_read_committed();
    PERFORM truerank.lock_boards_of(p_member, 0);
    v_rankings := ARRAY(SELECT r FROM truerank.member_rankings(p_member, 0) AS r);
    PERFORM FROM truerank.standing AS s
    WHERE s.ranking = ANY (v_rankings) AND s.member = ANY (v_names)
    ORDER BY s.ranking, s.member FOR UPDATE;
    -- Whoever was waited for may have begun another season.
    v_rankings := ARRAY(SELECT r FROM truerank.member_rankings(p_member, 0) AS r ORDER BY r);
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE b.id IN (SELECT r >> 36 FROM unnest(v_rankings) AS r) ORDER BY b.id
    LOOP
        SELECT array_agg(s ORDER BY s.ranking) INTO v_seasons
        FROM unnest(v_rankings) AS r
        CROSS JOIN LATERAL truerank.season_of_ranking(v_board, r) AS s
        WHERE r >> 36 = v_board.id AND s.ends_at > v_board.history_from;
        CONTINUE WHEN v_seasons IS NULL;
        -- Rows must be there to be locked; they draw their versions when they are computed again.
        INSERT INTO truerank.standing
            (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
        SELECT s.ranking, p_member, f.score, f.ties, 0, f.event_at, f.event_position, f.moved,
               f.sort_key
        FROM unnest(v_seasons) AS s
        CROSS JOIN LATERAL truerank.fold_events(
            v_board, s.ranking, v_names, s.starts_at, s.ends_at) AS f
        ORDER BY s.ranking
        ON CONFLICT (ranking, member) DO NOTHING;
        SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
            v_board, v_seasons, ARRAY(SELECT s.ranking FROM unnest(v_seasons) AS s),
            array_fill(p_member, ARRAY[cardinality(v_seasons)])) AS c;
        WITH gone AS (
            DELETE FROM truerank.standing AS s
            WHERE s.ranking IN (SELECT x.ranking FROM unnest(v_seasons) AS x)
              AND s.member = ANY (v_names) AND s.member <> p_member
            RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
        )
        SELECT array_agg((g.*)::truerank.changed) INTO v_gone FROM gone AS g;
        PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed || v_gone);
    END LOOP;
END
$$;
