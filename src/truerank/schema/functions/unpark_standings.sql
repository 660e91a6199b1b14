-- unpark_standings: forget parked rankings, which a live copy shows again.
CREATE OR REPLACE FUNCTION truerank.unpark_standings(p_rankings bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM truerank.parked_standing WHERE ranking = ANY (p_rankings)
$$;
