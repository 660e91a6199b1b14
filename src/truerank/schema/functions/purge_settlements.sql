-- purge_settlements: remove a slice of the settlements of a deleted board.
--
-- Returns: rows removed; 0 when nothing is left.
CREATE OR REPLACE FUNCTION truerank.purge_settlements(p_board_id integer, p_rows_max integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
    v_removed bigint;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'settlement_row', 'award', 'settlement_rule', 'settlement_excluded', 'settlement_name',
        'settlement', 'close_attempt'
    ] LOOP
        EXECUTE format(
            'DELETE FROM truerank.%1$I AS r WHERE r.ctid IN (
                 SELECT x.ctid FROM truerank.%1$I AS x
                 WHERE x.ranking >= $1 AND x.ranking < $2 LIMIT $3)', v_table)
        USING p_board_id::bigint << 36, (p_board_id::bigint + 1) << 36, p_rows_max;
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
    END LOOP;
    DELETE FROM truerank.award_rule AS r WHERE r.board_id = p_board_id;
    RETURN 0;
END
$$;
