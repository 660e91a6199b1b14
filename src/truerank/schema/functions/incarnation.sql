-- incarnation: which life of this server a transaction id belongs to.
--
-- The epoch, shortened; the timeline, because after a promotion transaction ids are used again;
-- and the start of the server, after which a projection verifies its cursor anew.
-- Called with every command, so not in SQL, whose plan would be made each time.
CREATE OR REPLACE FUNCTION truerank.incarnation() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT left(s.epoch::text, 8) FROM truerank.setting AS s)
        || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
        || '-' || to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint);
END
$$;
