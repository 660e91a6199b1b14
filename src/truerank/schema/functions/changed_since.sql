-- changed_since: whether a ranking, or a member's state, changed in a way that a snapshot doesn't show.
--
-- Where very much has been committed since, the answer is yes without looking at all of it.
CREATE OR REPLACE FUNCTION truerank.changed_since(p_ranking bigint, p_since pg_snapshot)
RETURNS boolean
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) >= 10000 OR count(*) FILTER (
        WHERE r.ranking = p_ranking
           OR r.op = 's' AND r.ranking IN (0, p_ranking >> 36 << 36)) > 0
    FROM (
        (SELECT o.ranking, o.op FROM truerank.outbox AS o
         WHERE o.xid >= pg_snapshot_xmax(p_since) ORDER BY o.xid LIMIT 10000)
        UNION ALL
        SELECT o.ranking, o.op FROM truerank.outbox_of(p_since) AS o
    ) AS r
$$;
