-- release_leases: let all groups of a worker go, for others to take at once.
CREATE OR REPLACE FUNCTION truerank.release_leases(p_worker uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.lease SET worker = NULL, expires_at = '-infinity' WHERE worker = p_worker;
    DELETE FROM truerank.worker WHERE id = p_worker;
$$;
