-- compared_season: the label of the season that a ranking's number stands for; null: it has none.
-- Of a cohort, with its number.
CREATE OR REPLACE FUNCTION truerank.compared_season(p_ranking bigint) RETURNS text
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT (truerank.season_of_ranking(b, p_ranking)).label || coalesce(
               (SELECT ', cohort ' || c.number FROM truerank.cohort AS c
                WHERE c.ranking = p_ranking), '')
    FROM truerank.board AS b WHERE b.id = p_ranking >> 36
$$;
