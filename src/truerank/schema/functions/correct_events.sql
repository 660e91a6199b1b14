-- correct_events: void events, or give them other values, in the caller's transaction.
--
-- p_values null voids; else each event counts with the new value (and p_ties, row after row) at the
-- time and position it always had. The events stay: each correction is a row of its own that names
-- its target, and of several amendments the last one counts.
-- p_correction_ids name amendments for ever, like event ids; voids need no name.
-- p_closed: the states in which a season takes no corrections. A sealed one takes them, a final one
-- is corrected by truerank.revise_season.
-- Repeat:  the same correction again answers duplicate; another content under its id, conflict.
-- Locks:   the board's advisory lock (shared), corrections by id, standings by ranking and member.
-- Returns: one row per event and season with the standing as it is now (score null: none left).
--          Refused with event_unknown, season_final, value_out_of_range, total_out_of_range, ...
CREATE OR REPLACE FUNCTION truerank.correct_events(
    p_board text, p_event_ids text[], p_correction_ids text[], p_values numeric[],
    p_ties bigint[], p_actor text, p_reason text, p_closed text[] DEFAULT '{final}'
) RETURNS SETOF truerank.receipt
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_n integer := cardinality(p_event_ids);
    v_half integer := v_n / 2;
    v_tie_n integer;
    v_board truerank.board;
    v_seasons truerank.season[];
    v_runs truerank.season_run[];
    v_correction truerank.correction[];
    v_changed truerank.changed[];
BEGIN
    -- Slices and subscripts below count from 1, in one dimension.
    p_event_ids := truerank.flat(p_event_ids);
    p_correction_ids := truerank.flat(p_correction_ids);
    p_values := truerank.flat(p_values);
    p_ties := truerank.flat(p_ties);
    v_board := truerank.lock_board(p_board);
    IF v_board.id IS NULL THEN
        RETURN QUERY SELECT g, 'refused', 'board_unknown', NULL::text, NULL::numeric,
                            NULL::bigint, NULL::xid8 FROM generate_series(1, v_n) AS g;
        RETURN;
    END IF;
    IF cardinality(v_board.filling) > 0 THEN
        -- No slice of a new season is computed while its events are being corrected.
        PERFORM FROM truerank.board AS b WHERE b.id = v_board.id FOR SHARE;
    END IF;
    v_tie_n := cardinality(v_board.tie_names);
    IF p_values IS NOT NULL AND v_n * v_tie_n <> coalesce(cardinality(p_ties), 0) THEN
        RETURN QUERY SELECT g, 'refused', 'tie_count_wrong', NULL::text, NULL::numeric,
                            NULL::bigint, NULL::xid8 FROM generate_series(1, v_n) AS g;
        RETURN;
    END IF;
    v_correction := truerank.prepare_corrections(
        v_board, p_event_ids, p_correction_ids, p_values, p_ties);
    IF current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM truerank.lift_bans(truerank.owners_of(
            ARRAY(SELECT c.member FROM unnest(v_correction) AS c)), NULL);
    END IF;
    SELECT array_agg(s) INTO v_seasons FROM truerank.seasons_of(
        v_board, ARRAY(SELECT c.at FROM unnest(v_correction) AS c WHERE c.code IS NULL)) AS s;
    v_runs := truerank.season_runs(v_seasons);
    v_correction := truerank.judge_corrections(v_board, v_seasons, v_correction, p_closed);

    BEGIN
        v_correction := truerank.store_corrections(
            v_board, v_correction, p_values IS NULL, p_actor, p_reason);
        SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
            v_board, v_seasons,
            ARRAY(SELECT g.ranking FROM truerank.corrected(v_runs, v_correction) AS g),
            ARRAY(SELECT g.member FROM truerank.corrected(v_runs, v_correction) AS g)) AS c;
        PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed);
    EXCEPTION WHEN numeric_value_out_of_range THEN
        -- Some total would leave its range: only those corrections are refused.
        IF v_n = 1 THEN
            RETURN QUERY SELECT 1, 'refused', 'total_out_of_range', NULL::text, NULL::numeric,
                                NULL::bigint, NULL::xid8;
            RETURN;
        END IF;
        RETURN QUERY SELECT * FROM truerank.correct_events(
            p_board, p_event_ids[:v_half], p_correction_ids[:v_half], p_values[:v_half],
            p_ties[:v_half * v_tie_n], p_actor, p_reason, p_closed);
        RETURN QUERY SELECT v_half + r.ord, r.outcome, r.code, r.season, r.score, r.version,
                            r.token
        FROM truerank.correct_events(
            p_board, p_event_ids[v_half + 1:], p_correction_ids[v_half + 1:],
            p_values[v_half + 1:], p_ties[v_half * v_tie_n + 1:], p_actor, p_reason,
            p_closed) AS r;
        RETURN;
    END;

    RETURN QUERY
    SELECT c.ord, c.outcome, c.code, r.label, truerank.in_units(s.score, v_board.decimals),
           s.version, c.xid
    FROM unnest(v_correction) AS c
    LEFT JOIN LATERAL truerank.seasons_at(v_runs, c.at) AS f
      ON c.outcome IN ('applied', 'duplicate')
    LEFT JOIN truerank.season_rows(v_seasons) AS r ON r.ranking = f.ranking
    LEFT JOIN truerank.standing AS s ON s.ranking = r.ranking AND s.member = truerank.owner_of(c.member)
    ORDER BY c.ord, r.ranking;
END
$$;
