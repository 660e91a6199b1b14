-- erasures_open: whether an erasure is under way.
CREATE OR REPLACE FUNCTION truerank.erasures_open() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM truerank.erasure AS e WHERE e.erased_at IS NULL)
$$;
