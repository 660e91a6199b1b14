-- delete_board: take a board out of service; its key is free again at once.
--
-- Commands that hold the board's lock or row are waited for by trying, never by queueing. Afterwards
-- purge_board removes standings and events in slices.
-- Returns: deleted, board_unknown, attached (a table feeds it: detach it first), or busy (a command is under way: try again).
CREATE OR REPLACE FUNCTION truerank.delete_board(p_board text, p_actor text, p_reason text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_id integer;
BEGIN
    SELECT b.id INTO v_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_id IS NULL THEN
        RETURN 'board_unknown';
    ELSIF EXISTS (SELECT FROM truerank.attachment AS a WHERE a.board_id = v_id
                   AND a.detached_at IS NULL) THEN
        RETURN 'attached';
    END IF;
    BEGIN
        v_id := (truerank.lock_board_alone(p_board, true, 1)).id;
    EXCEPTION WHEN lock_not_available THEN
        RETURN 'busy';
    END;
    IF v_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    UPDATE truerank.board SET deleted_at = clock_timestamp(), accepting = false WHERE id = v_id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_id, p_actor, 'delete_board', p_board, p_reason);
    RETURN 'deleted';
END
$$;
