-- rows_waiting: whether outbox rows are visible now that were not visible in a snapshot.
CREATE OR REPLACE FUNCTION truerank.rows_waiting(p_since pg_snapshot) RETURNS boolean
LANGUAGE sql STABLE STRICT AS $$
    SELECT EXISTS (SELECT FROM truerank.outbox WHERE xid >= pg_snapshot_xmax(p_since))
        OR EXISTS (SELECT FROM truerank.outbox WHERE xid = ANY (ARRAY(
                       SELECT x FROM pg_snapshot_xip(p_since) AS x)))
$$;
