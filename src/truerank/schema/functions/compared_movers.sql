-- compared_movers: whose standing in a ranking changed since a snapshot, at most p_rows_max of them.
--
-- A walk in order doesn't meet who moved from before it to behind it.
CREATE OR REPLACE FUNCTION truerank.compared_movers(
    p_since pg_snapshot, p_grp smallint, p_ranking bigint, p_rows_max integer
) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT c.member
    FROM (
        SELECT o.member FROM truerank.outbox AS o
        WHERE o.xid >= pg_snapshot_xmax(p_since) AND o.grp = p_grp AND o.ranking = p_ranking
        UNION ALL
        SELECT o.member FROM truerank.outbox_of(p_since) AS o
        WHERE o.grp = p_grp AND o.ranking = p_ranking
    ) AS c
    LIMIT p_rows_max
$$;
