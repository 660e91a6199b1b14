-- seasons_at: the rankings of the seasons that an instant falls into, with their ends.
--
-- Called for each event of a batch, and inlined there: a join on the bounds would compare every
-- event with every season, and a year of days would take minutes.
CREATE OR REPLACE FUNCTION truerank.seasons_at(p_runs truerank.season_run[], p_at timestamptz)
RETURNS TABLE (ranking bigint, ends_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT r.rankings[width_bucket(p_at, r.starts_at)], r.ends_at[width_bucket(p_at, r.starts_at)]
    FROM unnest(p_runs) AS r
    WHERE p_at < r.ends_at[width_bucket(p_at, r.starts_at)]
    OFFSET 0  -- or the joins above would carry the arrays along with every row
$$;
