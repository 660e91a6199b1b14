-- drop_generations: take copies that are gone from Redis off the list.
CREATE OR REPLACE FUNCTION truerank.drop_generations(p_ids uuid[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM truerank.generation WHERE id = ANY (p_ids)
$$;
