-- note_cursors: keep a copy of how far the copies of groups are, for metrics and retention.
--
-- p_ticks are the last ones that the copies show whole, p_snapshots what they show: more than
-- that tick where a batch was cut.
CREATE OR REPLACE FUNCTION truerank.note_cursors(
    p_ids uuid[], p_ticks bigint[], p_snapshots pg_snapshot[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation AS g
    SET cursor_tick = c.tick, cursor_snapshot = c.snapshot, seen_at = clock_timestamp()
    FROM unnest(p_ids, p_ticks, p_snapshots) AS c (id, tick, snapshot)
    WHERE g.id = c.id
$$;
