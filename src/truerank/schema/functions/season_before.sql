-- season_before: the season that has to be final before another one can be settled.
--
-- It decides in which tiers of a league those are who have yet to be divided. Null: there is none,
-- as for a season in which nobody has a score.
CREATE OR REPLACE FUNCTION truerank.season_before(p_season bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT truerank.league_waits_for(l, p_season) FROM truerank.league AS l
    WHERE l.dropped_at IS NULL AND p_season >= l.from_ranking AND p_season < l.to_ranking
      AND EXISTS (SELECT FROM truerank.cohort_member AS m WHERE m.season = p_season)
$$;
