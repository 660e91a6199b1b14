-- create_season: add a custom season to a board, before any of its events.
--
-- A label that looks like a built-in season is refused: it could name two things.
-- Returns: created, existing (the same bounds), different, label_reserved or board_unknown.
-- Raises:  check_violation where starts_at isn't before ends_at.
CREATE OR REPLACE FUNCTION truerank.create_season(
    p_board text, p_label text, p_starts_at timestamptz, p_ends_at timestamptz
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
BEGIN
    IF p_label ~ '^(all|\d{4}|\d{4}-\d{2}|\d{4}-\d{2}-\d{2}|\d{4}-W\d{2})$' THEN
        RETURN 'label_reserved';
    END IF;
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.key = p_board AND b.deleted_at IS NULL
    FOR UPDATE;
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at)
    SELECT truerank.ranking_id(v_board.id, 'custom', nextval('truerank.ranking_number')),
           v_board.id, 'custom', p_label, p_starts_at, p_ends_at
    ON CONFLICT (board_id, season, cohort, kind) DO NOTHING;
    IF FOUND THEN
        UPDATE truerank.board SET has_custom_seasons = true WHERE id = v_board.id;
        RETURN 'created';
    END IF;
    RETURN CASE WHEN EXISTS (
        SELECT FROM truerank.ranking AS r
        WHERE r.board_id = v_board.id AND r.season = p_label AND r.starts_at = p_starts_at
          AND r.ends_at = p_ends_at) THEN 'existing' ELSE 'different' END;
END
$$;
