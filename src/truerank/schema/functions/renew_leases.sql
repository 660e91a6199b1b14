-- renew_leases: extend a worker's leases, take free groups up to its share, give back the rest.
--
-- The share is the number of groups divided by the workers seen lately, rounded up, and what
-- others rest from comes on top. Expiry is by this server's clock alone.
-- Locks:   rows of truerank.lease, skipping those that another worker is just taking.
-- Returns: the groups held now.
CREATE OR REPLACE FUNCTION truerank.renew_leases(
    p_worker uuid, p_lease_ms integer, p_give_up smallint[]
) RETURNS smallint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_lease interval := make_interval(secs => p_lease_ms / 1000.0);
    v_now timestamptz := clock_timestamp();
    v_share integer;
    v_held smallint[];
BEGIN
    INSERT INTO truerank.worker (id, seen_at) VALUES (p_worker, v_now)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;
    DELETE FROM truerank.worker AS w WHERE w.seen_at < v_now - 10 * v_lease;
    SELECT ceil(s.groups::numeric / greatest(count(w.id), 1)) INTO v_share
    FROM truerank.setting AS s
    LEFT JOIN truerank.worker AS w ON w.seen_at >= v_now - v_lease
    GROUP BY s.groups;
    SELECT v_share + count(*) INTO v_share FROM truerank.lease AS l
    WHERE l.refused_by <> p_worker AND l.refused_until > v_now;

    UPDATE truerank.lease AS l SET worker = NULL, expires_at = '-infinity'
    WHERE l.worker = p_worker AND l.grp = ANY (p_give_up);

    WITH mine AS MATERIALIZED (
        SELECT l.grp, row_number() OVER (
            ORDER BY l.worker IS NOT DISTINCT FROM p_worker DESC, l.grp) AS n
        FROM (
            SELECT c.grp, c.worker FROM truerank.lease AS c
            WHERE (c.worker = p_worker OR c.worker IS NULL OR c.expires_at < v_now)
              AND NOT c.grp = ANY (p_give_up)
              AND NOT (c.refused_by IS NOT DISTINCT FROM p_worker AND c.refused_until > v_now)
            ORDER BY c.worker IS NOT DISTINCT FROM p_worker DESC, c.grp
            FOR UPDATE SKIP LOCKED
        ) AS l
    ), changed AS (
        UPDATE truerank.lease AS l
        SET worker = CASE WHEN m.n <= v_share THEN p_worker
                          ELSE nullif(l.worker, p_worker) END,
            expires_at = CASE WHEN m.n <= v_share THEN v_now + v_lease
                              WHEN l.worker = p_worker THEN '-infinity'
                              ELSE l.expires_at END
        FROM mine AS m WHERE l.grp = m.grp
        RETURNING l.grp, l.worker
    )
    SELECT array_agg(c.grp ORDER BY c.grp) INTO v_held
    FROM changed AS c WHERE c.worker = p_worker;
    RETURN coalesce(v_held, '{}');
END
$$;
