-- note_generation: list a copy of a group, or keep its state and cursor for metrics.
CREATE OR REPLACE FUNCTION truerank.note_generation(
    p_id uuid, p_grp smallint, p_epoch uuid, p_state text, p_tick bigint, p_snapshot pg_snapshot
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
    VALUES (p_id, p_grp, p_epoch, p_state, p_tick, p_snapshot)
    ON CONFLICT (id) DO UPDATE SET
        state = excluded.state, cursor_tick = excluded.cursor_tick,
        cursor_snapshot = excluded.cursor_snapshot, seen_at = clock_timestamp()
$$;
