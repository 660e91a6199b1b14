-- count_filling: how many members have events on a board whose seasons are being computed.
--
-- It reads the board's history, and remembers what it found until the seasons are there, so that one
-- who asks pays for it. Null where nothing is to be computed.
CREATE OR REPLACE FUNCTION truerank.count_filling(p_board text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_members bigint;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board.filling IS NULL OR v_board.filling = '{}' THEN
        RETURN NULL;
    END IF;
    SELECT count(DISTINCT e.member) INTO v_members FROM truerank.event AS e
    WHERE e.board_id = v_board.id AND e.member <> '';
    -- Nobody is waited for: who comes next counts again.
    UPDATE truerank.board AS b SET filling_members = v_members
    WHERE b.id = (SELECT x.id FROM truerank.board AS x
                  WHERE x.id = v_board.id AND x.filling = v_board.filling
                  FOR NO KEY UPDATE SKIP LOCKED);
    RETURN v_members;
END
$$;
