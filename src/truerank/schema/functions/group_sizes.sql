-- group_sizes: about how many standings groups have.
--
-- Counted up to a million each; a larger one may have all that the table is estimated to hold.
CREATE OR REPLACE FUNCTION truerank.group_sizes(p_groups smallint[])
RETURNS TABLE (grp smallint, rows bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.grp, CASE WHEN c.counted < 1000000 THEN c.counted
                       ELSE greatest(c.counted, (
                           SELECT t.reltuples::bigint FROM pg_class AS t
                           WHERE t.oid = 'truerank.standing'::regclass)) END
    FROM unnest(p_groups) AS g (grp)
    CROSS JOIN LATERAL (
        SELECT g.grp, count(*) AS counted FROM (
            SELECT FROM truerank.board AS b
            JOIN truerank.standing AS s
              ON s.ranking >= b.id::bigint << 36 AND s.ranking < (b.id::bigint + 1) << 36
            WHERE b.grp = g.grp LIMIT 1000000) AS found) AS c
$$;
