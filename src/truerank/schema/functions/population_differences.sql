-- population_differences: rankings whose population isn't the number of their standings.
--
-- Reads all standings. There are no such rankings, unless triggers were turned off.
CREATE OR REPLACE FUNCTION truerank.population_differences()
RETURNS TABLE (ranking bigint, population bigint, standings bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT ranking, coalesce(p.n, 0)::bigint, coalesce(s.n, 0)
    FROM (
        SELECT u.ranking, sum(u.n) AS n
        FROM (SELECT * FROM truerank.population
              UNION ALL SELECT * FROM truerank.population_change) AS u
        GROUP BY u.ranking
    ) AS p
    FULL JOIN (
        SELECT x.ranking, count(*) AS n FROM truerank.standing AS x GROUP BY x.ranking
    ) AS s USING (ranking)
    WHERE coalesce(p.n, 0) <> coalesce(s.n, 0)
    ORDER BY ranking
$$;
