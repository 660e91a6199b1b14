-- reopen_season: let a season take events again: a sealed one, or one whose grace is over.
--
-- Whatever the board's late_grace: it takes them until somebody closes it, which nothing does by
-- itself afterwards. A final one stays as it is.
-- Returns: reopened, same (it takes events already), season_final, board_unknown or season_unknown.
-- Raises:  55P03 where it is just being settled.
CREATE OR REPLACE FUNCTION truerank.reopen_season(
    p_board text, p_season text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_id bigint;
    v_ends_at timestamptz;
    v_ranking truerank.ranking;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    SELECT s.ranking, s.ends_at INTO v_id, v_ends_at
    FROM truerank.find_season(v_board.id, coalesce(p_season, '')) AS s;
    IF v_id IS NULL THEN
        RETURN 'season_unknown';
    END IF;
    SELECT r.* INTO v_ranking FROM truerank.ranking AS r WHERE r.id = v_id FOR NO KEY UPDATE;
    IF v_ranking.state = 'final' THEN
        RETURN 'season_final';
    ELSIF v_ranking.state IS DISTINCT FROM 'sealed'
          AND (v_ranking.kept_open OR v_board.late_grace IS NULL AND NOT v_board.auto_close
               OR clock_timestamp() < truerank.closes_at(v_board, v_ends_at)) THEN
        RETURN 'same';
    ELSIF v_ranking.id IS NULL THEN
        PERFORM truerank.note_rankings(ARRAY[v_id]);
    END IF;
    UPDATE truerank.ranking SET
        state = 'open', sealed_at = NULL, barrier_xid = NULL, barrier_at = NULL, hold_until = NULL,
        kept_open = true
    WHERE id = v_id AND state <> 'final';
    IF NOT FOUND THEN  -- of a row that somebody made a moment ago
        RETURN 'season_final';
    END IF;
    DELETE FROM truerank.close_attempt AS c WHERE c.ranking = v_id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_board.id, p_actor, 'reopen_season', p_season, p_reason);
    RETURN 'reopened';
END
$$;
