-- turn_ring: let writers write to the next segment, and truncate what that one held.
--
-- Call it in a transaction of its own. Nothing waits: where a lock isn't free at once, or a row
-- isn't yet read by every copy of a group, nothing happens and the next call tries again. A copy
-- is marked dead, to be filled anew, rather than fill the disk: one not seen for p_dead_s seconds,
-- and, once the outbox exceeds p_outbox_bytes_max, one that has not read what is to be truncated.
-- p_anyway turns a segment that is neither old nor large.
-- Returns: turned, fresh (nothing due), busy (a lock), unread (a copy is behind).
CREATE OR REPLACE FUNCTION truerank.turn_ring(
    p_age_s integer, p_bytes_max bigint, p_dead_s integer, p_anyway boolean DEFAULT false,
    p_outbox_bytes_max bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_ring truerank.ring;
    v_outbox regclass;
    v_tick regclass;
    v_next integer;
    v_oldest_tick bigint;
    v_late uuid[];
    v_late_tick bigint;
    v_large boolean;
    v_first_floor bigint;
    v_floor bigint;
    v_newest xid8;
    v_still xid8;
BEGIN
    SELECT r.* INTO v_ring FROM truerank.ring AS r FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'busy';
    END IF;
    IF NOT p_anyway AND v_ring.turned_at > clock_timestamp() - make_interval(secs => p_age_s)
       AND pg_total_relation_size(format('truerank.outbox_%s', v_ring.segment)::regclass)
           < p_bytes_max THEN
        RETURN 'fresh';
    END IF;
    SELECT coalesce(sum(pg_total_relation_size(format('truerank.outbox_%s', n)::regclass)
                        + pg_total_relation_size(format('truerank.tick_%s', n)::regclass))
                    > p_outbox_bytes_max, false)
    INTO v_large FROM generate_series(0, 3) AS n;
    v_next := (v_ring.segment + 1) % 4;
    v_outbox := format('truerank.outbox_%s', v_next)::regclass;
    v_tick := format('truerank.tick_%s', v_next)::regclass;

    -- A tick whose snapshot may not show every row of the segment, in whatever segment it is, can
    -- no longer be read on from. Looked up before the lock, because it may take a while.
    EXECUTE format('SELECT max(o.xid) FROM %s AS o', v_outbox) INTO v_newest;
    SELECT t.id + 1 INTO v_first_floor FROM truerank.tick AS t
    WHERE pg_snapshot_xmin(t.snapshot) <= v_newest ORDER BY t.id DESC LIMIT 1;

    BEGIN
        -- Never queue for this lock: whoever came after us would queue behind.
        EXECUTE format('LOCK TABLE %s, %s IN ACCESS EXCLUSIVE MODE NOWAIT', v_outbox, v_tick);
    EXCEPTION WHEN lock_not_available THEN
        RETURN 'busy';
    END;

    -- In statements after the lock: a transaction that wrote here has ended, and is seen.
    UPDATE truerank.generation SET state = 'dead'
    WHERE state IN ('live', 'warming')
      AND seen_at < clock_timestamp() - make_interval(secs => p_dead_s);
    EXECUTE format('SELECT max(o.xid) FROM %s AS o', v_outbox) INTO v_still;
    IF v_still IS DISTINCT FROM v_newest THEN
        RETURN 'busy';
    END IF;
    LOOP
        SELECT min(g.cursor_tick) INTO v_oldest_tick FROM truerank.generation AS g
        WHERE g.state IN ('live', 'warming');
        -- Every copy is asked below whether it shows all rows, so none needs more than its own
        -- tick.
        v_floor := least(coalesce(v_first_floor, 0), v_oldest_tick);
        EXECUTE format('SELECT greatest($1, $2 + 1, max(t.id) + 1) FROM %s AS t', v_tick)
        INTO v_floor USING v_floor, v_late_tick;
        -- By its base, not by what it shows: after a rollback of Redis it may show what it did any
        -- time since it was at that tick, while it caught up in pieces.
        SELECT array_agg(g.id), max(g.cursor_tick) INTO v_late, v_late_tick
        FROM truerank.generation AS g LEFT JOIN truerank.tick AS t ON t.id = g.cursor_tick
        WHERE g.state IN ('live', 'warming')
          AND (t.snapshot IS NULL OR g.cursor_tick < v_floor
               OR truerank.unread_in(v_outbox, v_still, t.snapshot));
        EXIT WHEN v_late IS NULL;
        IF NOT v_large THEN
            RETURN 'unread';
        END IF;
        UPDATE truerank.generation SET state = 'dead' WHERE id = ANY (v_late);
    END LOOP;

    UPDATE truerank.ring SET
        segment = v_next, floor_tick = greatest(floor_tick, v_floor),
        turned_at = clock_timestamp();
    EXECUTE format('TRUNCATE %s, %s', v_outbox, v_tick);
    RETURN 'turned';
END
$$;
