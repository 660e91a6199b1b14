-- create_season: add a custom season to a board, before any of its events.
--
-- A label that looks like a built-in season is refused: it could name two things. So is a range
-- that holds events already: they are in no standing of the season, until a recompute of some
-- member would count them.
-- Locks:   the board's row; where the range reaches into the present, the board's advisory lock
--          until the transaction ends, so call it in one of its own: a writer under way doesn't
--          know the season. Never queued for: that stops all new writers.
-- Returns: created, existing (the same bounds), different, label_reserved, season_has_events,
--          history_incomplete (events of the range may be forgotten) or board_unknown.
-- Raises:  25001 above READ COMMITTED; check_violation where starts_at isn't before
--          ends_at; 55P03 where writers of the board, or who changes it, hold their transactions
--          open for two seconds.
CREATE OR REPLACE FUNCTION truerank.create_season(
    p_board text, p_label text, p_starts_at timestamptz, p_ends_at timestamptz
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board truerank.board;
    v_present boolean;
BEGIN
    IF char_length(p_label) NOT BETWEEN 1 AND 100 OR p_label ~ '^(all|[0-9]{4}|[0-9]{4}-[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-W[0-9]{2})$' THEN
        RETURN 'label_reserved';
    END IF;
    PERFORM truerank.need_read_committed();
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.key = p_board AND b.deleted_at IS NULL;
    -- An hour's margin, for this transaction may stay open while the present moves on.
    v_present := p_starts_at <= clock_timestamp() + v_board.future_max + interval '1 hour'
        AND NOT EXISTS (SELECT FROM truerank.ranking AS r
                        WHERE r.board_id = v_board.id AND r.season = p_label);
    v_board := truerank.lock_board_alone(p_board, v_present);
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    ELSIF v_present AND EXISTS (
        SELECT FROM truerank.event AS e WHERE e.board_id = v_board.id AND e.kind = 's'
        AND e.occurred_at >= p_starts_at AND e.occurred_at < p_ends_at) THEN
        RETURN 'season_has_events';
    ELSIF p_starts_at < v_board.history_from
          AND NOT EXISTS (SELECT FROM truerank.ranking AS r
                          WHERE r.board_id = v_board.id AND r.season = p_label) THEN
        RETURN 'history_incomplete';
    END IF;
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at, made_at)
    SELECT truerank.ranking_id(v_board.id, 'custom', nextval('truerank.ranking_number')),
           v_board.id, 'custom', p_label, p_starts_at, p_ends_at, clock_timestamp()
    WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r  -- or the attempt would draw a number
                      WHERE r.board_id = v_board.id AND r.season = p_label)
    ON CONFLICT (board_id, season, cohort, kind) DO NOTHING;
    IF FOUND THEN
        UPDATE truerank.board SET has_custom_seasons = true, close_next_at = NULL
        WHERE id = v_board.id;
        RETURN 'created';
    END IF;
    RETURN CASE WHEN EXISTS (
        SELECT FROM truerank.ranking AS r
        WHERE r.board_id = v_board.id AND r.season = p_label AND r.starts_at = p_starts_at
          AND r.ends_at = p_ends_at) THEN 'existing' ELSE 'different' END;
END
$$;
