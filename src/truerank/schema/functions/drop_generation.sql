-- drop_generation: take a copy that is gone from Redis off the list.
CREATE OR REPLACE FUNCTION truerank.drop_generation(p_id uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM truerank.generation WHERE id = p_id
$$;
