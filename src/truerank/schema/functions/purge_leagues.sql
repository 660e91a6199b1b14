-- purge_leagues: remove a slice of what a deleted board's leagues have left.
--
-- Returns: rows removed; 0 when nothing is left.
CREATE OR REPLACE FUNCTION truerank.purge_leagues(p_board_id integer, p_rows_max integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint := p_board_id::bigint << 36;
    v_last bigint := (p_board_id::bigint + 1) << 36;
    v_removed bigint;
BEGIN
    DELETE FROM truerank.cohort_member AS m WHERE m.ctid IN (
        SELECT x.ctid FROM truerank.cohort_member AS x
        WHERE x.season >= v_first AND x.season < v_last LIMIT p_rows_max);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    IF v_removed > 0 THEN
        RETURN v_removed;
    END IF;
    DELETE FROM truerank.league_move AS v WHERE v.ctid IN (
        SELECT x.ctid FROM truerank.league_move AS x
        WHERE x.board_id = p_board_id LIMIT p_rows_max);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    IF v_removed > 0 THEN
        RETURN v_removed;
    END IF;
    DELETE FROM truerank.league_key AS k WHERE k.board_id = p_board_id;
    DELETE FROM truerank.league AS l WHERE l.board_id = p_board_id;
    DELETE FROM truerank.cohort AS c WHERE c.season >= v_first AND c.season < v_last;
    RETURN 0;
END
$$;
