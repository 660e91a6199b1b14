-- purge_settlements: remove a slice of the settlements of a deleted board.
--
-- Returns: rows removed; 0 when nothing is left.
CREATE OR REPLACE FUNCTION truerank.purge_settlements(p_board_id integer, p_rows_max integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint := p_board_id::bigint << 36;
    v_last bigint := (p_board_id::bigint + 1) << 36;
    v_removed bigint;
BEGIN
    DELETE FROM truerank.settlement_row AS r WHERE r.ctid IN (
        SELECT x.ctid FROM truerank.settlement_row AS x
        WHERE x.ranking >= v_first AND x.ranking < v_last LIMIT p_rows_max);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    IF v_removed > 0 THEN
        RETURN v_removed;
    END IF;
    DELETE FROM truerank.award AS a WHERE a.ranking >= v_first AND a.ranking < v_last;
    DELETE FROM truerank.award_rule AS r WHERE r.board_id = p_board_id;
    DELETE FROM truerank.settlement_excluded AS x WHERE x.ranking >= v_first AND x.ranking < v_last;
    DELETE FROM truerank.settlement_name AS n WHERE n.ranking >= v_first AND n.ranking < v_last;
    DELETE FROM truerank.settlement AS s WHERE s.ranking >= v_first AND s.ranking < v_last;
    RETURN 0;
END
$$;
