-- privacy_waits: whether somebody was taken out of sight whom no tick shows yet.
CREATE OR REPLACE FUNCTION truerank.privacy_waits() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM truerank.privacy_change)
$$;
