-- cut_snapshot: a snapshot restricted to the transactions before one of them.
--
-- The limit is never below the first transaction that the reader hasn't seen, plus one: otherwise
-- a batch of one large transaction would make no progress.
CREATE OR REPLACE FUNCTION truerank.cut_snapshot(
    p_snapshot pg_snapshot, p_from xid8, p_limit xid8
) RETURNS pg_snapshot
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_first xid8;
    v_cut xid8;
BEGIN
    IF p_limit IS NULL THEN
        RETURN p_snapshot;
    END IF;
    SELECT o.xid INTO v_first FROM truerank.outbox AS o
    WHERE o.xid >= p_from ORDER BY o.xid LIMIT 1;
    v_cut := greatest(p_limit, (v_first::text::numeric + 1)::text::xid8);
    IF v_cut >= pg_snapshot_xmax(p_snapshot) THEN
        RETURN p_snapshot;
    END IF;
    RETURN format('%s:%s:%s', least(pg_snapshot_xmin(p_snapshot), v_cut), v_cut,
        (SELECT string_agg(x::text, ',' ORDER BY x) FROM pg_snapshot_xip(p_snapshot) AS x
         WHERE x < v_cut))::pg_snapshot;
END
$$;
