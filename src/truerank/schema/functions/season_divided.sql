-- season_divided: of a cohort's ranking the season's that is divided; of any other, itself.
CREATE OR REPLACE FUNCTION truerank.season_divided(p_ranking bigint) RETURNS bigint
LANGUAGE sql STABLE STRICT AS $$
    SELECT CASE WHEN (p_ranking >> 32) & 15 = 9
                THEN (SELECT c.season FROM truerank.cohort AS c WHERE c.ranking = p_ranking)
                ELSE p_ranking END
$$;
