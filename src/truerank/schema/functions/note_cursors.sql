-- note_cursors: keep a copy of how far the copies of groups are, for metrics and retention.
CREATE OR REPLACE FUNCTION truerank.note_cursors(
    p_ids uuid[], p_tick bigint, p_snapshot pg_snapshot
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation
    SET cursor_tick = p_tick, cursor_snapshot = p_snapshot, seen_at = clock_timestamp()
    WHERE id = ANY (p_ids)
$$;
