-- due_closes: seasons that are to be closed now, the oldest first.
--
-- On boards with auto_close those that ended since it was switched on, and whose grace is over,
-- whether or not anything happened in them; on all boards sealed ones whose hold is over, wherever
-- a close was begun. A board on which nothing is due isn't looked at again before something is.
CREATE OR REPLACE FUNCTION truerank.due_closes(p_limit integer)
RETURNS TABLE (board text, season text, ends_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_now timestamptz := clock_timestamp();
    v_due integer := 0;
    v_found integer;
BEGIN
    RETURN QUERY
    SELECT b.key, r.season, nullif(r.ends_at, 'infinity')
    FROM truerank.ranking AS r JOIN truerank.board AS b ON b.id = r.board_id
    WHERE r.state = 'sealed' AND r.hold_until <= v_now AND b.deleted_at IS NULL
    ORDER BY r.sealed_at LIMIT p_limit;
    GET DIAGNOSTICS v_due = ROW_COUNT;
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE b.auto_close AND b.deleted_at IS NULL
          AND (b.close_next_at IS NULL OR b.close_next_at <= v_now)
        ORDER BY b.close_next_at NULLS FIRST, b.id LIMIT p_limit
    LOOP
        EXIT WHEN v_due >= p_limit;
        RETURN QUERY
        SELECT v_board.key, s.label, s.ends_at
        FROM truerank.seasons_ended(v_board, v_now) AS s
        WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r
                          WHERE r.id = s.ranking AND (r.state <> 'open' OR r.kept_open))
        ORDER BY s.ends_at, s.starts_at DESC LIMIT p_limit - v_due;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_due := v_due + v_found;
        IF v_found = 0 THEN
            PERFORM FROM truerank.board AS b WHERE b.id = v_board.id FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                -- Rules that changed meanwhile have taken the time away, and it stays away.
                UPDATE truerank.board AS b SET close_next_at = truerank.next_end(v_board, v_now)
                WHERE b.id = v_board.id
                  AND b.close_next_at IS NOT DISTINCT FROM v_board.close_next_at
                  AND b.late_grace IS NOT DISTINCT FROM v_board.late_grace
                  AND b.seasons = v_board.seasons AND b.filling = v_board.filling;
            END IF;
        END IF;
    END LOOP;
END
$$;
