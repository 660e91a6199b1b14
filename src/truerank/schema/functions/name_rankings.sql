-- name_rankings: the seasons of rankings, by number, and of cohorts their numbers.
--
-- What is told of a ranking never changes. season: the number of the season that is divided, where
-- it is a cohort; else its own. Numbers that name nothing are left out, and those of built-in
-- seasons in which nothing happened: they follow from the number.
CREATE OR REPLACE FUNCTION truerank.name_rankings(p_rankings bigint[])
RETURNS TABLE (ranking bigint, season bigint, label text, cohort integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, coalesce(c.season, r.id), r.season, c.number
    FROM truerank.ranking AS r LEFT JOIN truerank.cohort AS c ON c.ranking = r.id
    WHERE r.id = ANY (p_rankings)
$$;
