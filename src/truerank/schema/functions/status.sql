-- status: how the pipeline is doing, for people.
--
-- Waiting rows are those that the live copies don't show, by PostgreSQL's own copy of the cursors
-- (up to a heartbeat old); outbox_age_ms is the most that any of them has waited.
CREATE OR REPLACE FUNCTION truerank.status()
RETURNS TABLE (
    database_version text, installation uuid, epoch uuid, groups integer, boards bigint,
    rankings bigint, events_estimate bigint, standings_estimate bigint, groups_leased bigint,
    workers bigint, outbox_bytes bigint, outbox_waiting bigint, outbox_age_ms bigint,
    last_tick bigint, last_tick_at timestamptz, segment integer, floor_tick bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.database_version, i.id, i.epoch, i.groups, h.boards, h.rankings, h.events_estimate,
           h.standings_estimate, h.groups_leased, h.workers, h.outbox_bytes, h.outbox_waiting,
           h.outbox_age_ms, h.last_tick, h.last_tick_at, h.segment, h.floor_tick
    FROM truerank.installation() AS i, truerank.health_state() AS h
$$;
