-- erasures_to_purge: whose traces are to be removed from which groups in Redis.
--
-- Those that nothing in PostgreSQL names any more. Copies from floor_tick on have seen the removals.
CREATE OR REPLACE FUNCTION truerank.erasures_to_purge(p_groups smallint[])
RETURNS TABLE (erasure uuid, names text[], groups smallint[], floor_tick bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.id, e.names, g.left, r.floor_tick
    FROM truerank.erasure AS e
    CROSS JOIN truerank.ring AS r
    CROSS JOIN LATERAL (
        SELECT array_agg(n) AS left FROM unnest(p_groups) AS n
        WHERE NOT EXISTS (SELECT FROM truerank.erasure_group AS d
                          WHERE d.erasure = e.id AND d.grp = n)) AS g
    WHERE e.erased_at IS NULL AND e.swept_xid IS NOT NULL AND g.left IS NOT NULL
      AND NOT EXISTS (SELECT FROM truerank.outbox AS o WHERE o.xid <= e.swept_xid)
      -- A request that names the person may be on its way still.
      AND NOT EXISTS (SELECT FROM truerank.webhook_delivery AS d
                      WHERE d.lease IS NOT NULL AND d.leased_until > clock_timestamp()
                        AND d.member IS NOT NULL AND d.attempted_at <= e.swept_at)
    ORDER BY e.asked_at LIMIT 100
$$;
