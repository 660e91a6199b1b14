-- read_batch: what became visible for some groups between a snapshot and a tick.
--
-- p_since is the snapshot the groups have been read up to. Rows come coalesced to the newest
-- version of a standing and packed as the projection takes them: operation (1 byte), version
-- (8 bytes, big-endian), sort key, member in UTF-8.
-- p_tick_ids and p_nonces name the ticks that must exist for the batch to mean anything: the one
-- it starts from, a pending one, and the one it ends at. They are looked up in the same snapshot
-- as the rows: looked up before, they could have been on a primary that is no longer one.
-- More than p_rows_max rows: the batch ends at an earlier transaction, for which the tick vouches
-- as well. One transaction is never split.
-- Returns: first one row with grp null: proven, the floor of retained ticks read after the rows,
--          and the snapshot reached. Then one row per group and ranking.
CREATE OR REPLACE FUNCTION truerank.read_batch(
    p_since pg_snapshot, p_until pg_snapshot, p_groups smallint[],
    p_tick_ids bigint[], p_nonces uuid[], p_rows_max integer
) RETURNS TABLE (grp smallint, ranking bigint, key_bytes integer, packed bytea[],
                 proven boolean, floor_tick bigint, reached pg_snapshot)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_old xid8[] := ARRAY(SELECT x FROM pg_snapshot_xip(p_since) AS x);
    v_from xid8 := pg_snapshot_xmax(p_since);
    v_limit xid8;
    v_batch truerank.batch_part[];
BEGIN
    SELECT o.xid INTO v_limit FROM truerank.outbox AS o
    WHERE o.xid >= v_from AND o.xid < pg_snapshot_xmax(p_until)
    ORDER BY o.xid OFFSET p_rows_max LIMIT 1;
    reached := truerank.cut_snapshot(p_until, v_from, v_limit);

    WITH visible AS (
        SELECT o.grp, o.ranking, o.member, o.version, o.op, o.sort_key
        FROM truerank.outbox AS o
        WHERE o.xid >= v_from AND o.xid < pg_snapshot_xmax(reached) AND o.grp = ANY (p_groups)
          AND pg_visible_in_snapshot(o.xid, reached)
        UNION ALL
        SELECT o.grp, o.ranking, o.member, o.version, o.op, o.sort_key
        FROM truerank.outbox AS o
        WHERE o.xid = ANY (v_old) AND o.grp = ANY (p_groups)
          AND pg_visible_in_snapshot(o.xid, reached)
    ), newest AS (
        -- A ranking is of one group: with it in front, the parts need no sort of their own.
        SELECT DISTINCT ON (v.grp, v.ranking, v.member) v.*
        FROM visible AS v ORDER BY v.grp, v.ranking, v.member, v.version DESC
    ), parts AS (
        SELECT n.grp, n.ranking, max(length(n.sort_key)) AS key_bytes,
               array_agg(n.op::text::bytea || int8send(n.version) || n.sort_key
                         || convert_to(n.member, 'UTF8')) AS packed
        FROM newest AS n GROUP BY n.grp, n.ranking
    )
    SELECT ARRAY(SELECT (p.grp, p.ranking, p.key_bytes, p.packed)::truerank.batch_part
                 FROM parts AS p),
           (SELECT count(*) FROM unnest(p_tick_ids, p_nonces) AS w (id, nonce)
            JOIN truerank.tick AS t ON t.id = w.id AND t.nonce = w.nonce) = cardinality(p_tick_ids)
    INTO v_batch, proven;

    -- Only after the rows: a turn of the ring in between would have taken rows unread.
    SELECT r.floor_tick INTO floor_tick FROM truerank.ring AS r;
    RETURN NEXT;
    RETURN QUERY SELECT b.grp, b.ranking, b.key_bytes, b.packed,
                        NULL::boolean, NULL::bigint, NULL::pg_snapshot
                 FROM unnest(v_batch) AS b;
END
$$;
