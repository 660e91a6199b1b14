-- due_closes: seasons that are to be closed now, those that have been due the longest first.
--
-- On boards with auto_close those that ended since it was switched on, and whose grace is over,
-- whether or not anything happened in them; on all boards sealed ones whose hold is over, wherever
-- a close was begun. One that was tried is due again later, see try_close: it stands in nobody's
-- way. A board on which nothing is due isn't looked at again before something is; where there are
-- more boards than p_limit, they take turns.
-- p_all: also those that were tried just now.
CREATE OR REPLACE FUNCTION truerank.due_closes(p_limit integer, p_all boolean DEFAULT true)
RETURNS TABLE (board text, season text, ends_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_now timestamptz := clock_timestamp();
    v_boards text[] := '{}';
    v_seasons text[] := '{}';
    v_ends timestamptz[] := '{}';
    v_due timestamptz[] := '{}';
    v_found record;
BEGIN
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE b.auto_close AND b.deleted_at IS NULL
          AND (b.close_next_at IS NULL OR b.close_next_at <= v_now
               OR p_all AND EXISTS (SELECT FROM truerank.close_attempt AS a
                                    WHERE a.ranking >= b.id::bigint << 36
                                      AND a.ranking < (b.id::bigint + 1) << 36))
        ORDER BY b.close_next_at NULLS FIRST, b.id LIMIT p_limit
    LOOP
        SELECT coalesce(array_agg(f.label) FILTER (WHERE f.due), '{}') AS labels,
               coalesce(array_agg(f.ends_at) FILTER (WHERE f.due), '{}') AS ends,
               coalesce(array_agg(coalesce(f.next_at, f.ends_at)) FILTER (WHERE f.due), '{}')
                   AS due,
               min(f.next_at) FILTER (WHERE f.next_at > v_now) AS next_at
        INTO v_found
        FROM (
            SELECT s.label, s.ends_at, s.starts_at, a.next_at,
                   p_all OR a.next_at IS NULL OR a.next_at <= v_now AS due
            FROM truerank.seasons_ended(v_board, v_now) AS s
            LEFT JOIN truerank.close_attempt AS a ON a.ranking = s.ranking
            WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r
                              WHERE r.id = s.ranking AND (r.state <> 'open' OR r.kept_open))
            ORDER BY coalesce(a.next_at, s.ends_at), s.ends_at, s.starts_at DESC
            LIMIT p_limit
        ) AS f;
        v_boards := v_boards || array_fill(v_board.key, ARRAY[cardinality(v_found.labels)]);
        v_seasons := v_seasons || v_found.labels;
        v_ends := v_ends || v_found.ends;
        v_due := v_due || v_found.due;
        PERFORM FROM truerank.board AS b WHERE b.id = v_board.id FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            -- Rules that changed meanwhile have taken the time away, and it stays away.
            UPDATE truerank.board AS b SET close_next_at = CASE
                WHEN cardinality(v_found.labels) > 0 THEN v_now
                ELSE least(truerank.next_end(v_board, v_now), v_found.next_at) END
            WHERE b.id = v_board.id
              AND b.close_next_at IS NOT DISTINCT FROM v_board.close_next_at
              AND b.late_grace IS NOT DISTINCT FROM v_board.late_grace
              AND b.seasons = v_board.seasons AND b.filling = v_board.filling;
        END IF;
    END LOOP;
    RETURN QUERY
    SELECT d.board, d.season, d.ends_at
    FROM (
        SELECT u.board, u.season, u.ends_at, u.due, u.ord
        FROM unnest(v_boards, v_seasons, v_ends, v_due)
             WITH ORDINALITY AS u (board, season, ends_at, due, ord)
        UNION ALL
        SELECT b.key, r.season, nullif(r.ends_at, 'infinity'),
               coalesce(a.next_at, r.hold_until), 0
        FROM truerank.ranking AS r
        JOIN truerank.board AS b ON b.id = r.board_id
        LEFT JOIN truerank.close_attempt AS a ON a.ranking = r.id
        WHERE r.state = 'sealed' AND r.hold_until <= v_now AND b.deleted_at IS NULL
          AND (p_all OR a.next_at IS NULL OR a.next_at <= v_now)
    ) AS d
    ORDER BY d.due, d.ord LIMIT p_limit;
END
$$;
