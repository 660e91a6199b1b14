-- rows_waiting: whether outbox rows are visible now that were not visible in a snapshot.
--
-- The order makes the planner walk the index: it can't know that the newest rows are the last,
-- and would read the whole outbox in the hope to meet one soon.
CREATE OR REPLACE FUNCTION truerank.rows_waiting(p_since pg_snapshot) RETURNS boolean
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM (
               SELECT o.xid FROM truerank.outbox AS o
               WHERE o.xid >= pg_snapshot_xmax(p_since) ORDER BY o.xid LIMIT 1) AS o)
        OR EXISTS (SELECT FROM truerank.outbox_of(p_since))
$$;
