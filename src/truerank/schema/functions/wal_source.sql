-- wal_source: which cluster this is, and the timeline of its WAL, as `identifier:timeline`.
--
-- Of two servers of one cluster that both take writes, the one with the lower timeline is the
-- one that was replaced.
-- Raises: object_not_in_prerequisite_state on a standby.
CREATE OR REPLACE FUNCTION truerank.wal_source() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.system_identifier || ':'
        || ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
    FROM pg_control_system() AS c
$$;
