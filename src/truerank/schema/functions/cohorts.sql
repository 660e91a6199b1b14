-- cohorts: the cohorts of a season in order of their numbers, after one; p_season as in find_season.
--
-- members: places given away, of size; who left since is counted. population: members with a
-- standing in it now, without those who are hidden or banned.
CREATE OR REPLACE FUNCTION truerank.cohorts(
    p_board_id integer, p_season text, p_after integer, p_limit integer
) RETURNS TABLE (number integer, tier integer, tier_name text, key text, size integer,
                 members integer, population bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    WITH season AS MATERIALIZED (
        SELECT * FROM truerank.find_season(p_board_id, p_season)
    ), withheld AS MATERIALIZED (
        SELECT m.cohort
        FROM season AS s
        CROSS JOIN (SELECT DISTINCT y.member FROM truerank.member_state AS y
                    WHERE y.board_id IN (0, p_board_id)
                      AND y.state IN ('hidden', 'banned', 'merged')) AS y
        JOIN truerank.cohort_member AS m ON m.season = s.ranking AND m.member = y.member
        JOIN truerank.standing AS t ON t.ranking = m.cohort AND t.member = y.member
    )
    SELECT c.number, c.tier, l.tiers[c.tier + 1], c.key, c.size, c.members,
           (SELECT coalesce((SELECT p.n FROM truerank.population AS p
                             WHERE p.ranking = c.ranking), 0) + coalesce(sum(x.n), 0)::bigint
            FROM truerank.population_change AS x WHERE x.ranking = c.ranking)
           - (SELECT count(*) FROM withheld AS w WHERE w.cohort = c.ranking)
    FROM season AS s
    JOIN truerank.cohort AS c ON c.season = s.ranking AND c.number > p_after
    LEFT JOIN LATERAL (
        SELECT x.tiers FROM truerank.league AS x
        WHERE x.board_id = p_board_id AND x.period = s.period
        ORDER BY x.dropped_at DESC NULLS FIRST LIMIT 1) AS l ON true
    ORDER BY c.number LIMIT p_limit
$$;
