-- lock_board_alone: the board's row, and the board's advisory lock where its writers are to be out.
--
-- For a change that no command under way may miss. Neither lock is queued for, nor held while the
-- other isn't free: who waits with the board's lock stops all its writers.
-- Returns: null where no board has the key.
-- Raises:  55P03 once p_tries attempts, 20 ms apart, have found somebody else in the way.
CREATE OR REPLACE FUNCTION truerank.lock_board_alone(
    p_key text, p_without_writers boolean, p_tries integer DEFAULT 100
) RETURNS truerank.board
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board;
BEGIN
    FOR v_try IN 1..p_tries LOOP
        BEGIN
            SELECT b.* INTO v_board FROM truerank.board AS b
            WHERE b.key = p_key AND b.deleted_at IS NULL FOR NO KEY UPDATE NOWAIT;
            IF v_board.id IS NOT NULL AND p_without_writers
               AND NOT pg_try_advisory_xact_lock(truerank.lock_class(), v_board.id & 255) THEN
                RAISE lock_not_available USING MESSAGE = 'writers of the board are under way';
            END IF;
            RETURN v_board;
        EXCEPTION WHEN lock_not_available THEN  -- and the row is free again
            IF v_try = p_tries THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.02);
    END LOOP;
END
$$;
