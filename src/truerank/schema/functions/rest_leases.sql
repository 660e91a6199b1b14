-- rest_leases: let groups go that a worker could not serve, and keep it from them for a while.
--
-- Until then others take them beyond their share.
CREATE OR REPLACE FUNCTION truerank.rest_leases(
    p_worker uuid, p_groups smallint[], p_rest_ms integer
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.lease
    SET worker = NULL, expires_at = '-infinity', refused_by = p_worker,
        refused_until = clock_timestamp() + make_interval(secs => p_rest_ms / 1000.0)
    WHERE worker = p_worker AND grp = ANY (p_groups)
$$;
