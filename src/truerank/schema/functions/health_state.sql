-- health_state: how the pipeline is doing, for people and metrics.
--
-- The four arrays say, as Redis does, what the live copies show: group, snapshot, the instant that
-- is shown whole, and the tick that the cursor names. Without them PostgreSQL's own copy of the
-- cursors is taken, up to a heartbeat old.
-- outbox_waiting counts rows that the copies don't show yet, up to 100,000; outbox_age_ms is the
-- most that any of them has waited. cursor_at are the instants of the ticks given, in their order.
-- Cost: bounded by what waits, never by what the outbox holds.
CREATE OR REPLACE FUNCTION truerank.health_state(
    p_groups smallint[] DEFAULT NULL, p_snapshots pg_snapshot[] DEFAULT NULL,
    p_through timestamptz[] DEFAULT NULL, p_cursors bigint[] DEFAULT NULL
)
RETURNS TABLE (
    database_version text, boards bigint, rankings bigint, events_estimate bigint,
    standings_estimate bigint, groups_leased bigint, workers bigint, outbox_bytes bigint,
    outbox_waiting bigint, outbox_age_ms bigint, last_tick bigint, last_tick_at timestamptz,
    last_tick_age_ms bigint, segment integer, segment_bytes bigint[], segment_age_ms bigint,
    floor_tick bigint, copies_warming bigint, copies_dead bigint, cursor_at timestamptz[],
    dead_rows bigint, parked_rows bigint, parked_rankings bigint,
    told_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_low xid8;
    v_rows_max CONSTANT integer := 100000;
BEGIN
    database_version := current_setting('server_version');
    told_at := clock_timestamp();
    SELECT r.segment, r.floor_tick, (extract(epoch FROM told_at - r.turned_at) * 1000)::bigint
    INTO segment, floor_tick, segment_age_ms FROM truerank.ring AS r;
    SELECT count(*) INTO boards FROM truerank.board;
    SELECT count(*) INTO rankings FROM truerank.ranking;
    SELECT c.reltuples::bigint INTO events_estimate FROM pg_class AS c
    WHERE c.oid = 'truerank.event'::regclass;
    SELECT c.reltuples::bigint INTO standings_estimate FROM pg_class AS c
    WHERE c.oid = 'truerank.standing'::regclass;
    SELECT count(*), count(DISTINCT l.worker) INTO groups_leased, workers FROM truerank.lease AS l
    WHERE l.worker IS NOT NULL AND l.expires_at > told_at;
    SELECT array_agg(pg_total_relation_size(format('truerank.outbox_%s', n)::regclass)
                     + pg_total_relation_size(format('truerank.tick_%s', n)::regclass) ORDER BY n)
    INTO segment_bytes FROM generate_series(0, 3) AS n;
    SELECT sum(b) INTO outbox_bytes FROM unnest(segment_bytes) AS b;
    SELECT t.id, t.taken_at, (extract(epoch FROM told_at - t.taken_at) * 1000)::bigint
    INTO last_tick, last_tick_at, last_tick_age_ms FROM truerank.tick AS t
    ORDER BY t.id DESC LIMIT 1;
    SELECT count(*) FILTER (WHERE g.state = 'warming'), count(*) FILTER (WHERE g.state = 'dead')
    INTO copies_warming, copies_dead FROM truerank.generation AS g;
    SELECT array_agg((SELECT t.taken_at FROM truerank.tick AS t WHERE t.id = c.tick LIMIT 1)
                     ORDER BY c.n)
    INTO cursor_at FROM unnest(p_cursors) WITH ORDINALITY AS c (tick, n);
    SELECT coalesce(sum(s.n_dead_tup), 0) INTO dead_rows FROM pg_stat_all_tables AS s
    WHERE s.relid = 'truerank.standing'::regclass;
    SELECT count(*) INTO parked_rows FROM truerank.parked AS p WHERE p.done_at IS NULL;
    SELECT count(*) INTO parked_rankings FROM truerank.parked_standing;

    IF p_groups IS NULL THEN
        SELECT array_agg(g.grp), array_agg(g.cursor_snapshot),
               array_agg((SELECT t.taken_at FROM truerank.tick AS t
                          WHERE t.id = g.cursor_tick LIMIT 1))
        INTO p_groups, p_snapshots, p_through
        FROM truerank.generation AS g WHERE g.state = 'live';
    END IF;
    SELECT coalesce(min(pg_snapshot_xmax(s)), '0') INTO v_low FROM unnest(p_snapshots) AS s;
    WITH shown AS MATERIALIZED (
        SELECT * FROM unnest(p_groups, p_snapshots, p_through) AS c (grp, snapshot, through)
    ), scanned AS MATERIALIZED (
        -- As in rows_waiting: the order makes the planner walk the index.
        (SELECT o.grp, o.xid FROM truerank.outbox AS o
         WHERE o.xid >= v_low ORDER BY o.xid LIMIT v_rows_max)
        UNION ALL
        -- And as in outbox_of, for the transactions of several snapshots.
        (SELECT o.grp, o.xid
         FROM (SELECT DISTINCT x FROM shown AS c, pg_snapshot_xip(c.snapshot) AS x
               WHERE x < v_low) AS r
         CROSS JOIN LATERAL (
             SELECT b.grp, b.xid FROM truerank.outbox AS b WHERE b.xid BETWEEN r.x AND r.x OFFSET 0
         ) AS o
         LIMIT v_rows_max)
    )
    SELECT count(*), coalesce(extract(epoch FROM told_at - min(coalesce(
        c.through, last_tick_at))) * 1000, 0)::bigint
    INTO outbox_waiting, outbox_age_ms
    FROM scanned AS o LEFT JOIN shown AS c ON c.grp = o.grp
    WHERE c.snapshot IS NULL OR NOT pg_visible_in_snapshot(o.xid, c.snapshot);
    outbox_waiting := least(outbox_waiting, v_rows_max);
    RETURN NEXT;
END
$$;
