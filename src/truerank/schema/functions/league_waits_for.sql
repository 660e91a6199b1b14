-- league_waits_for: the season whose settlement decides who is in which tier in another one.
--
-- The last one before it that the league divides and in which somebody has, or had, a score, until it
-- is final. Null: none is waited for; so also where somebody is in a cohort of that season or a later
-- one already, as nobody moves by an earlier one then.
CREATE OR REPLACE FUNCTION truerank.league_waits_for(p_league truerank.league, p_season bigint)
RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT m.season FROM (
        SELECT x.season FROM truerank.cohort_member AS x
        WHERE p_league.promote + p_league.demote > 0
          AND x.season >= p_league.from_ranking AND x.season < p_season
        ORDER BY x.season DESC LIMIT 1
    ) AS m
    WHERE NOT EXISTS (SELECT FROM truerank.ranking AS r
                      WHERE r.id = m.season AND r.state = 'final')
      AND NOT EXISTS (SELECT FROM truerank.cohort AS c
                      WHERE c.season >= p_season AND c.season < p_league.to_ranking)
$$;
