-- season_runs: seasons laid out so that an instant finds its own by halving; see seasons_at.
--
-- One run per kind of period, whose seasons don't overlap, and one per custom season, which may.
CREATE OR REPLACE FUNCTION truerank.season_runs(p_seasons truerank.season[])
RETURNS truerank.season_run[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg((r.starts_at, r.ends_at, r.rankings)::truerank.season_run)
    FROM (
        SELECT array_agg(s.starts_at ORDER BY s.starts_at) AS starts_at,
               array_agg(s.ends_at ORDER BY s.starts_at) AS ends_at,
               array_agg(s.ranking ORDER BY s.starts_at) AS rankings
        FROM unnest(p_seasons) AS s
        GROUP BY s.period, CASE WHEN s.period = 'custom' THEN s.ranking END
    ) AS r
$$;
