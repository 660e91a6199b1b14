-- seasons_at_hand: the seasons that boards have now, had before and have next, and what is shown.
--
-- Of custom seasons the last twenty.
-- Returns: rows of `find_season`, each with its board, and with the ranking that the public is shown
--          instead, since when, and whether the projection may have it; null where it isn't frozen.
CREATE OR REPLACE FUNCTION truerank.seasons_at_hand(p_boards integer[])
RETURNS TABLE (
    board_id integer, shown bigint, frozen_at timestamptz, logged boolean, ranking bigint,
    period text, label text, starts_at timestamptz, ends_at timestamptz, state text,
    closes_at timestamptz, hold_until timestamptz, settled_at timestamptz, revision integer
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.id, s.ranking, s.frozen_at, s.logged, f.*
    FROM truerank.board AS b
    CROSS JOIN LATERAL (
        SELECT truerank.period_label(
                   p.period, truerank.period_index(p.period, b.zone, now()) + beside.n) AS label
        FROM unnest(b.seasons) AS p(period)
        CROSS JOIN LATERAL generate_series(
            CASE p.period WHEN 'all' THEN 0 ELSE -1 END, CASE p.period WHEN 'all' THEN 0 ELSE 1 END
        ) AS beside(n)
        UNION ALL
        (SELECT r.season FROM truerank.ranking AS r
         WHERE r.board_id = b.id AND r.period = 'custom' AND r.kind = 'live' AND r.cohort = ''
         ORDER BY r.starts_at DESC LIMIT 20)
    ) AS named
    CROSS JOIN LATERAL truerank.find_season(b.id, named.label) AS f
    LEFT JOIN LATERAL truerank.shown_ranking(f.ranking) AS s ON true
    WHERE b.id = ANY (p_boards)
$$;
