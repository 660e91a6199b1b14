-- drop_openings: drop a slice of what was carried over for seasons that ended before the horizon.
--
-- Their standings are never computed again.
-- Returns: rows dropped; 0 when nothing is left.
CREATE OR REPLACE FUNCTION truerank.drop_openings(p_board truerank.board, p_rows_max integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ranking bigint := p_board.id::bigint << 36;
    v_dropped bigint;
BEGIN
    LOOP
        SELECT o.ranking INTO v_ranking FROM truerank.opening AS o
        WHERE o.ranking > v_ranking AND o.ranking < (p_board.id::bigint + 1) << 36
        ORDER BY o.ranking LIMIT 1;
        IF NOT FOUND THEN
            RETURN 0;
        END IF;
        IF (truerank.season_of_ranking(p_board, v_ranking)).ends_at <= p_board.history_from THEN
            DELETE FROM truerank.opening AS o WHERE o.ctid IN (
                SELECT x.ctid FROM truerank.opening AS x
                WHERE x.ranking = v_ranking LIMIT p_rows_max);
            GET DIAGNOSTICS v_dropped = ROW_COUNT;
            RETURN v_dropped;
        END IF;
    END LOOP;
END
$$;
