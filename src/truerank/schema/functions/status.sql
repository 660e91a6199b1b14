-- status: how the pipeline is doing, for people and metrics.
--
-- Waiting rows are those that the last tick doesn't show, or that the slowest live copy hasn't
-- read, by PostgreSQL's own copy of the cursors (up to a heartbeat old).
CREATE OR REPLACE FUNCTION truerank.status()
RETURNS TABLE (
    database_version text, installation uuid, epoch uuid, groups integer, boards bigint,
    rankings bigint, events_estimate bigint, standings_estimate bigint, groups_leased bigint,
    workers bigint, outbox_bytes bigint, outbox_waiting bigint, outbox_age_ms bigint,
    last_tick bigint, last_tick_at timestamptz, segment integer, floor_tick bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_slowest pg_snapshot;
BEGIN
    database_version := current_setting('server_version');
    SELECT s.installation, s.epoch, s.groups INTO installation, epoch, groups
    FROM truerank.setting AS s;
    SELECT r.segment, r.floor_tick INTO segment, floor_tick FROM truerank.ring AS r;
    SELECT count(*) INTO boards FROM truerank.board;
    SELECT count(*) INTO rankings FROM truerank.ranking;
    SELECT c.reltuples::bigint INTO events_estimate FROM pg_class AS c
    WHERE c.oid = 'truerank.event'::regclass;
    SELECT c.reltuples::bigint INTO standings_estimate FROM pg_class AS c
    WHERE c.oid = 'truerank.standing'::regclass;
    SELECT count(*) INTO groups_leased FROM truerank.lease AS l
    WHERE l.worker IS NOT NULL AND l.expires_at > clock_timestamp();
    SELECT count(DISTINCT l.worker) INTO workers FROM truerank.lease AS l
    WHERE l.worker IS NOT NULL AND l.expires_at > clock_timestamp();
    SELECT sum(pg_total_relation_size(i.inhrelid)) INTO outbox_bytes
    FROM pg_inherits AS i WHERE i.inhparent = 'truerank.outbox'::regclass;
    SELECT t.id, t.taken_at INTO last_tick, last_tick_at FROM truerank.tick AS t
    ORDER BY t.id DESC LIMIT 1;
    SELECT g.cursor_snapshot INTO v_slowest FROM truerank.generation AS g
    WHERE g.state = 'live' ORDER BY g.cursor_tick LIMIT 1;
    SELECT count(*) INTO outbox_waiting FROM (
        SELECT FROM truerank.outbox AS o
        WHERE v_slowest IS NULL OR o.xid >= pg_snapshot_xmin(v_slowest)
              AND NOT pg_visible_in_snapshot(o.xid, v_slowest)
        LIMIT 100000) AS w;
    outbox_age_ms := CASE WHEN outbox_waiting = 0 THEN 0 ELSE
        coalesce(extract(epoch FROM clock_timestamp() - last_tick_at) * 1000, 0)::bigint END;
    RETURN NEXT;
END
$$;
