-- recount_rankings: the rankings of a board, or of all boards, whose standings can be recomputed.
--
-- Those in which somebody has a standing, and those that a season was ever listed for; not those
-- that ended before the board's history begins, for their events are forgotten. Cohorts come with
-- their number behind the season's label.
-- may_change: the season takes changes; what is settled, or a copy, is left to a revision.
CREATE OR REPLACE FUNCTION truerank.recount_rankings(p_board text DEFAULT NULL)
RETURNS TABLE (board text, label text, ranking bigint, may_change boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE walk AS (
        SELECT b.id AS board_id, b.id::bigint << 36 AS ranking FROM truerank.board AS b
        WHERE b.deleted_at IS NULL AND (p_board IS NULL OR b.key = p_board)
        UNION ALL
        SELECT w.board_id, (SELECT s.ranking FROM truerank.standing AS s
                            WHERE s.ranking > w.ranking
                              AND s.ranking < (w.board_id::bigint + 1) << 36
                            ORDER BY s.ranking LIMIT 1)
        FROM walk AS w WHERE w.ranking IS NOT NULL
    ), known AS (
        SELECT w.board_id, w.ranking FROM walk AS w WHERE w.ranking & 68719476735 <> 0
        UNION
        SELECT r.board_id, r.id FROM truerank.ranking AS r
        JOIN truerank.board AS b ON b.id = r.board_id
        WHERE b.deleted_at IS NULL AND (p_board IS NULL OR b.key = p_board)
    )
    SELECT b.key, s.label || CASE WHEN r.kind = 'cohort' THEN ', cohort ' || r.cohort ELSE '' END,
           k.ranking, coalesce(r.state = 'open', true)
    FROM known AS k
    JOIN truerank.board AS b ON b.id = k.board_id
    LEFT JOIN truerank.ranking AS r ON r.id = k.ranking
    CROSS JOIN LATERAL truerank.season_of_ranking(b, k.ranking) AS s
    WHERE s.ends_at > b.history_from AND coalesce(r.kind, 'live') IN ('live', 'cohort')
    ORDER BY b.key, k.ranking
$$;
