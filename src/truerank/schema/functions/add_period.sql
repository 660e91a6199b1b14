-- add_period: let a board keep seasons of one more period, those of its past included.
--
-- In a transaction of its own. From the commit on, commands fold into the new seasons, and fill_slice
-- computes what came before, until when nobody reads them. Periods: all, day, week, month, year.
-- Returns: added, same, board_unknown, period_unknown, or history_incomplete where events of the
--          board may be forgotten: its past can't be computed.
-- Raises:  55P03 where who changes the board, or a writer above READ COMMITTED, holds it for two
--          seconds; 25001 above READ COMMITTED.
CREATE OR REPLACE FUNCTION truerank.add_period(
    p_board text, p_period text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board truerank.board;
BEGIN
    PERFORM truerank.need_read_committed();
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL FOR NO KEY UPDATE;
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    ELSIF NOT coalesce(p_period = ANY (ARRAY['all', 'day', 'week', 'month', 'year']), false) THEN
        RETURN 'period_unknown';
    ELSIF p_period = ANY (v_board.seasons) THEN
        RETURN 'same';
    ELSIF isfinite(v_board.history_from) THEN
        RETURN 'history_incomplete';
    END IF;
    UPDATE truerank.board AS b SET
        seasons = b.seasons || p_period, filling = b.filling || p_period, filled_to = '',
        filling_xid = NULL, filled_members = 0, filling_members = NULL
    WHERE b.id = v_board.id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board.id, p_actor, 'add_period', p_board, p_reason,
            jsonb_build_object('period', p_period));
    RETURN 'added';
END
$$;
