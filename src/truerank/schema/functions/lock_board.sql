-- lock_board: the board's row, read after its advisory lock was taken (shared).
--
-- The lock keeps a close from settling while a command is under way. Its key is hashed to 256,
-- so that any number of boards fits the lock table. Reading before locking could return a state
-- that a closer has changed since, so the row is read again in a later statement.
-- Returns: null where no board has the key.
CREATE OR REPLACE FUNCTION truerank.lock_board(p_key text) RETURNS truerank.board
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.key = p_key AND b.deleted_at IS NULL;
    IF v_board.id IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(truerank.lock_class(), v_board.id & 255);
        -- With a number before the board is read: whoever has raised the board's horizon waits for
        -- all transactions that may have read the old one, and knows them by their numbers.
        PERFORM pg_current_xact_id();
        SELECT b.* INTO v_board FROM truerank.board AS b
        WHERE b.id = v_board.id AND b.key = p_key AND b.deleted_at IS NULL;
    END IF;
    RETURN v_board;
END
$$;
