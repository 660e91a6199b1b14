-- ring_held_by: what keeps the next segment of the outbox from being emptied, see turn_ring.
--
-- kind is lock (somebody has had a lock on the segment for more than a second) or copy (of a group,
-- that has not read it); age_ms how long the transaction is open, or nobody has brought the copy
-- forward; null of a prepared transaction.
CREATE OR REPLACE FUNCTION truerank.ring_held_by()
RETURNS TABLE (kind text, name text, age_ms bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_outbox regclass;
    v_tick regclass;
    v_newest xid8;
    v_last_tick bigint;
BEGIN
    SELECT format('truerank.outbox_%s', (r.segment + 1) % 4)::regclass,
           format('truerank.tick_%s', (r.segment + 1) % 4)::regclass
    INTO v_outbox, v_tick FROM truerank.ring AS r;
    EXECUTE format('SELECT max(o.xid) FROM %s AS o', v_outbox) INTO v_newest;
    EXECUTE format('SELECT max(t.id) FROM %s AS t', v_tick) INTO v_last_tick;
    RETURN QUERY
        SELECT 'lock', coalesce(format('pid %s, %s', a.pid, a.application_name),
                                'a prepared transaction'),
               (extract(epoch FROM clock_timestamp() - min(a.xact_start)) * 1000)::bigint
        FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.relation IN (v_outbox, v_tick) AND l.granted
          AND l.database = (SELECT d.oid FROM pg_database AS d
                            WHERE d.datname = current_database())
          AND (l.pid IS NULL OR a.xact_start < clock_timestamp() - interval '1 second')
          AND l.pid IS DISTINCT FROM pg_backend_pid()
        GROUP BY a.pid, a.application_name;
    RETURN QUERY
        SELECT 'copy', format('group %s, generation %s', g.grp, g.id),
               (extract(epoch FROM clock_timestamp() - g.seen_at) * 1000)::bigint
        FROM truerank.generation AS g LEFT JOIN truerank.tick AS t ON t.id = g.cursor_tick
        WHERE g.state IN ('live', 'warming')
          AND (t.snapshot IS NULL OR g.cursor_tick <= v_last_tick
               OR truerank.unread_in(v_outbox, v_newest, t.snapshot))
        ORDER BY g.seen_at, g.grp;
END
$$;
