-- count_history: how many members have events on a board. It reads the board's history.
CREATE OR REPLACE FUNCTION truerank.count_history(p_board text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(DISTINCT e.member)
    FROM truerank.board AS b JOIN truerank.event AS e ON e.board_id = b.id
    WHERE b.key = p_board AND b.deleted_at IS NULL AND e.member <> ''
$$;
