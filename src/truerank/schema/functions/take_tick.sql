-- take_tick: commit a snapshot and a nonce, if rows wait or the caller wants one anyway.
--
-- Call it in a transaction of its own. The commit waits for as much durability as the server
-- offers: the flush covers all earlier commits, so what a surviving tick shows has survived too.
-- taken_at is the start of the statement, never later than the snapshot: all that was
-- acknowledged before it is visible in the tick.
-- The changes that took somebody out of sight are seen first, then the number is drawn, then the
-- snapshot taken: every tick from this number on shows them, whoever takes it.
-- Returns: one row, or none where nothing waits and p_anyway is false.
-- Raises:  read_only_sql_transaction on a standby, whose snapshots are in another order.
CREATE OR REPLACE FUNCTION truerank.take_tick(p_since pg_snapshot, p_anyway boolean)
RETURNS TABLE (id bigint, nonce uuid, snapshot pg_snapshot, taken_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_groups smallint[];
    v_id bigint;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE read_only_sql_transaction USING MESSAGE = 'a standby can''t take ticks';
    END IF;
    IF NOT p_anyway AND truerank.rows_waiting(p_since) IS NOT TRUE THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'remote_apply', true);
    WITH seen AS MATERIALIZED (
        SELECT c.ctid AS at FROM truerank.privacy_change AS c FOR UPDATE SKIP LOCKED
    ), taken AS (
        DELETE FROM truerank.privacy_change AS c
        WHERE c.ctid = ANY (ARRAY(SELECT s.at FROM seen AS s)) RETURNING c.grp
    )
    SELECT array_agg(DISTINCT t.grp) INTO v_groups FROM taken AS t;
    v_id := nextval('truerank.tick_id');
    IF v_groups IS NOT NULL THEN
        INSERT INTO truerank.privacy AS p (grp, tick)
        SELECT g, v_id FROM unnest(v_groups) AS g ORDER BY g
        ON CONFLICT (grp) DO UPDATE SET tick = greatest(p.tick, excluded.tick);
    END IF;
    RETURN QUERY
    INSERT INTO truerank.tick AS t (segment, id, nonce, snapshot, taken_at)
    SELECT r.segment, v_id, gen_random_uuid(), pg_current_snapshot(), now()
    FROM truerank.ring AS r
    RETURNING t.id, t.nonce, t.snapshot, t.taken_at;
END
$$;
