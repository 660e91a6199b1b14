-- seasons_now: the seasons of a board that an instant falls into and that aren't final: one of each
-- period, and the custom ones.
CREATE OR REPLACE FUNCTION truerank.seasons_now(p_board truerank.board, p_at timestamptz)
RETURNS TABLE (ranking bigint, label text)
LANGUAGE sql STABLE AS $$
    SELECT s.ranking, s.label
    FROM (
        SELECT truerank.ranking_id(p_board.id, p.period, i.index) AS ranking,
               truerank.period_label(p.period, i.index) AS label
        FROM unnest(p_board.seasons) AS p (period)
        CROSS JOIN LATERAL truerank.period_index(p.period, p_board.zone, p_at) AS i (index)
        WHERE NOT p.period = ANY (p_board.filling)
        UNION ALL
        SELECT r.id, r.season FROM truerank.ranking AS r
        WHERE r.board_id = p_board.id AND r.period = 'custom' AND r.kind = 'live' AND r.cohort = ''
          AND p_at >= r.starts_at AND p_at < r.ends_at
    ) AS s
    WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r
                      WHERE r.id = s.ranking AND r.state = 'final')
    ORDER BY s.ranking
$$;
