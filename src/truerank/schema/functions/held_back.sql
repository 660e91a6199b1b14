-- held_back: what keeps dead rows of this database from being removed, the oldest of each kind.
--
-- kind is session, prepared (a transaction that waits for COMMIT PREPARED) or slot (of
-- replication). age_ms is how long it has been open, null of a slot; xids how many transactions
-- have begun since its snapshot. Of sessions of other roles PostgreSQL shows this only to members
-- of pg_read_all_stats.
CREATE OR REPLACE FUNCTION truerank.held_back()
RETURNS TABLE (kind text, name text, age_ms bigint, xids bigint, held bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH open AS (
        SELECT 'session' AS kind, format('pid %s, %s', a.pid, a.application_name) AS name,
               a.xact_start AS since,
               greatest(age(a.backend_xmin), age(a.backend_xid))::bigint AS xids
        FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
          AND a.backend_type = 'client backend' AND a.xact_start IS NOT NULL
        UNION ALL
        SELECT 'prepared', p.gid, p.prepared, age(p.transaction)::bigint
        FROM pg_prepared_xacts AS p WHERE p.database = current_database()
        UNION ALL
        SELECT 'slot', s.slot_name, NULL, greatest(age(s.xmin), age(s.catalog_xmin))::bigint
        FROM pg_replication_slots AS s WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
    )
    SELECT DISTINCT ON (o.kind) o.kind, o.name,
           (extract(epoch FROM clock_timestamp() - min(o.since) OVER kinds) * 1000)::bigint,
           coalesce(max(o.xids) OVER kinds, 0), count(*) OVER kinds
    FROM open AS o
    WINDOW kinds AS (PARTITION BY o.kind)
    ORDER BY o.kind, o.since, o.xids DESC NULLS LAST
$$;
