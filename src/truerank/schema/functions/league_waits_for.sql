-- league_waits_for: the season whose settlement decides who is in which tier in another one.
--
-- The last one before it in which somebody was, or is to be, divided, until it is final. Null: none
-- is waited for.
CREATE OR REPLACE FUNCTION truerank.league_waits_for(p_league truerank.league, p_season bigint)
RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT m.season FROM (
        SELECT x.season FROM truerank.cohort_member AS x
        WHERE p_league.promote + p_league.demote > 0
          AND x.season >= p_league.to_ranking - 4294967296 AND x.season < p_season
          -- Of seasons that the league doesn't divide any more nobody is to be divided.
          AND (x.cohort IS NOT NULL OR x.season >= p_league.from_ranking)
        ORDER BY x.season DESC LIMIT 1
    ) AS m
    WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r
                      WHERE r.id = m.season AND r.state = 'final')
$$;
