-- reopen_season: let a sealed season take events again; a final one stays as it is.
--
-- It is not closed by itself afterwards: somebody closes it.
-- Returns: reopened, same (it is open), season_final, board_unknown or season_unknown.
-- Raises:  55P03 where it is just being settled.
CREATE OR REPLACE FUNCTION truerank.reopen_season(
    p_board text, p_season text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board_id integer;
    v_id bigint;
    v_state text;
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    v_id := (SELECT s.ranking FROM truerank.find_season(v_board_id, coalesce(p_season, '')) AS s);
    IF v_id IS NULL THEN
        RETURN 'season_unknown';
    END IF;
    SELECT r.state INTO v_state FROM truerank.ranking AS r WHERE r.id = v_id FOR NO KEY UPDATE;
    IF v_state = 'final' THEN
        RETURN 'season_final';
    ELSIF v_state IS DISTINCT FROM 'sealed' THEN
        RETURN 'same';
    END IF;
    UPDATE truerank.ranking SET
        state = 'open', sealed_at = NULL, barrier_xid = NULL, barrier_at = NULL, hold_until = NULL,
        kept_open = true
    WHERE id = v_id;
    DELETE FROM truerank.close_attempt AS c WHERE c.ranking = v_id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_board_id, p_actor, 'reopen_season', p_season, p_reason);
    RETURN 'reopened';
END
$$;
