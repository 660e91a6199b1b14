-- incarnation: which life of this server a transaction id belongs to.
--
-- After a promotion transaction ids are used again. The timeline tells that; the start of the
-- server tells a restart, after which a projection verifies its cursor anew.
CREATE OR REPLACE FUNCTION truerank.incarnation() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) || '-'
        || to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint)
$$;
