-- raise_horizon: say that a board's events before its retention are to be forgotten.
--
-- From the commit on such events are refused, and those that are there can't be corrected.
-- Nothing happens where the board's row, or the walk of the horizon before, is held by somebody.
CREATE OR REPLACE FUNCTION truerank.raise_horizon(p_board_id integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.id = p_board_id FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND OR v_board.retention IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO truerank.pruning (board_id) VALUES (p_board_id) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        UPDATE truerank.pruning AS p SET
            barrier = NULL, after_member = '', began_at = clock_timestamp(), ended_at = NULL
        FROM (SELECT h.board_id FROM truerank.pruning AS h
              WHERE h.board_id = p_board_id AND h.ended_at IS NOT NULL
              FOR UPDATE SKIP LOCKED) AS h
        WHERE p.board_id = h.board_id;
    END IF;
    IF FOUND THEN
        UPDATE truerank.board SET
            history_from = greatest(history_from, clock_timestamp() - retention)
        WHERE id = p_board_id;
    END IF;
END
$$;
