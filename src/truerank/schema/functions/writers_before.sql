-- writers_before: the transactions with numbers before one that hold a board's lock, as every writer
-- does; the oldest first.
--
-- The lock's key is hashed to 256, so writers of another board may be among them. pid is null of a
-- transaction that waits for COMMIT PREPARED; name is then its id, else the application's. age_ms
-- is how long it has been open. Of sessions of other roles PostgreSQL shows the pid alone, unless
-- the owner of this function is in pg_read_all_stats.
CREATE OR REPLACE FUNCTION truerank.writers_before(p_board_id integer, p_xid xid8)
RETURNS TABLE (pid integer, name text, state text, age_ms bigint)
LANGUAGE sql VOLATILE AS $$
    WITH lock AS MATERIALIZED (  -- one look at all of them
        SELECT l.* FROM pg_locks AS l
        WHERE l.granted AND (
            l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock'
            OR l.locktype = 'advisory' AND l.classid = truerank.lock_class()::oid
               AND l.objid = (p_board_id & 255)::oid AND l.objsubid = 2
               AND l.database = (SELECT d.oid FROM pg_database AS d
                                 WHERE d.datname = current_database()))
    )
    SELECT DISTINCT h.pid, coalesce(p.gid, a.application_name), coalesce(a.state, 'prepared'),
           (extract(epoch FROM clock_timestamp() - coalesce(p.prepared, a.xact_start)) * 1000)
               ::bigint AS age_ms
    FROM lock AS h
    LEFT JOIN pg_stat_activity AS a ON a.pid = h.pid
    JOIN lock AS x
      ON x.locktype = 'transactionid' AND x.virtualtransaction = h.virtualtransaction
     AND x.pid IS NOT DISTINCT FROM h.pid
    LEFT JOIN pg_prepared_xacts AS p ON h.pid IS NULL AND p.transaction = x.transactionid
    WHERE h.locktype = 'advisory' AND age(x.transactionid) > age(p_xid::xid)
    ORDER BY age_ms DESC NULLS LAST, h.pid
$$;
