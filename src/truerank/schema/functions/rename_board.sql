-- rename_board: give a board another key. Its events, standings and copies stay where they are.
--
-- Commands under the old key are refused from the commit on; event ids stay used.
-- Returns: renamed, same, board_unknown or board_exists.
-- Raises:  check_violation for a key that may not be.
CREATE OR REPLACE FUNCTION truerank.rename_board(
    p_board text, p_key text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id integer;
BEGIN
    SELECT b.id INTO v_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL FOR UPDATE;
    IF v_id IS NULL THEN
        RETURN 'board_unknown';
    ELSIF p_board = p_key THEN
        RETURN 'same';
    ELSIF EXISTS (SELECT FROM truerank.board AS b WHERE b.key = p_key AND b.deleted_at IS NULL) THEN
        RETURN 'board_exists';
    END IF;
    BEGIN
        UPDATE truerank.board SET key = p_key WHERE id = v_id;
    EXCEPTION WHEN unique_violation THEN  -- another took the key meanwhile
        RETURN 'board_exists';
    END;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_id, p_actor, 'rename_board', p_board, p_reason, jsonb_build_object('key', p_key));
    RETURN 'renamed';
END
$$;
