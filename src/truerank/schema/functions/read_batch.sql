-- read_batch: what became visible for some groups between a snapshot and a tick.
--
-- p_since is the snapshot the groups have been read up to. Rows come coalesced to the newest
-- version of a standing and packed as the projection takes them: operation (1 byte), version
-- (8 bytes, big-endian), sort key, member in UTF-8. States of members come first, under the first
-- number of their board (0: all boards) and with key_bytes -1; then, under each ranking in which
-- such a member may have a standing by now, a row m that has it moved in or out.
-- p_tick_ids and p_nonces name the ticks that must exist for the batch to mean anything: the one
-- it starts from, a pending one, and the one it ends at. They are looked up in the same snapshot
-- as the rows: looked up before, they could have been on a primary that is no longer one.
-- More than p_rows_max rows: the batch ends at an earlier transaction, for which the tick vouches
-- as well. One transaction is never split.
-- A snapshot that lies in the future is of another cluster, from which a dump brought the ticks.
-- Returns: first one row with grp null: proven, the floor of retained ticks read after the rows,
--          the snapshot reached, the newest tick that it contains (null: none), and the life of
--          the server (see incarnation). Then one row per group and ranking, with its equal_bytes
--          (see there).
CREATE OR REPLACE FUNCTION truerank.read_batch(
    p_since pg_snapshot, p_until pg_snapshot, p_groups smallint[],
    p_tick_ids bigint[], p_nonces uuid[], p_rows_max integer
) RETURNS TABLE (grp smallint, ranking bigint, key_bytes integer, packed bytea[],
                 proven boolean, floor_tick bigint, reached pg_snapshot, base bigint, life text,
                 equal_bytes integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_from xid8 := pg_snapshot_xmax(p_since);
    v_limit xid8;
    v_batch truerank.batch_part[];
BEGIN
    SELECT o.xid INTO v_limit FROM truerank.outbox AS o
    WHERE o.xid >= v_from AND o.xid < pg_snapshot_xmax(p_until)
    ORDER BY o.xid OFFSET p_rows_max LIMIT 1;
    reached := truerank.cut_snapshot(p_until, v_from, v_limit);

    SELECT t.id INTO base FROM truerank.tick AS t
    WHERE pg_snapshot_xmax(t.snapshot) <= pg_snapshot_xmax(reached)
      AND NOT EXISTS (SELECT FROM pg_snapshot_xip(reached) AS x
                      WHERE pg_visible_in_snapshot(x, t.snapshot))
    ORDER BY t.id DESC LIMIT 1;

    WITH visible AS (
        SELECT o.grp, o.ranking, o.member, o.version, o.op, o.sort_key
        FROM truerank.outbox AS o
        WHERE o.xid >= v_from AND o.xid < pg_snapshot_xmax(reached) AND o.grp = ANY (p_groups)
          AND pg_visible_in_snapshot(o.xid, reached)
        UNION ALL
        SELECT o.grp, o.ranking, o.member, o.version, o.op, o.sort_key
        FROM truerank.outbox_of(p_since) AS o
        WHERE o.grp = ANY (p_groups)
          AND pg_visible_in_snapshot(o.xid, reached)
    ), newest AS (
        -- A ranking is of one group: with it in front, the parts need no sort of their own.
        SELECT DISTINCT ON (v.grp, v.ranking, v.member) v.*
        FROM visible AS v ORDER BY v.grp, v.ranking, v.member, v.version DESC
    ), parts AS (
        SELECT n.grp, n.ranking,
               CASE WHEN n.ranking & 68719476735 = 0 THEN -1 ELSE max(length(n.sort_key)) END
                   AS key_bytes,
               array_agg(n.op::text::bytea || int8send(n.version) || n.sort_key
                         || convert_to(n.member, 'UTF8')) AS packed
        FROM newest AS n GROUP BY n.grp, n.ranking
    )
    SELECT ARRAY(SELECT (p.grp, p.ranking, p.key_bytes, p.packed)::truerank.batch_part
                 FROM parts AS p),
           (SELECT count(*) FROM unnest(p_tick_ids, p_nonces) AS w (id, nonce)
            JOIN truerank.tick AS t ON t.id = w.id AND t.nonce = w.nonce) = cardinality(p_tick_ids)
           AND pg_snapshot_xmax(p_since) <= pg_snapshot_xmax(pg_current_snapshot()),
           truerank.incarnation()
    INTO v_batch, proven, life;

    -- Only after the rows: a turn of the ring in between would have taken rows unread.
    SELECT r.floor_tick INTO floor_tick FROM truerank.ring AS r;
    RETURN NEXT;
    RETURN QUERY SELECT b.grp, b.ranking, b.key_bytes, b.packed,
                        NULL::boolean, NULL::bigint, NULL::pg_snapshot, NULL::bigint, NULL::text, 0
                 FROM unnest(v_batch) AS b WHERE b.key_bytes = -1;
    IF FOUND THEN
        -- Also for a state that a copy has already: its batch may have been cut off half-way. Read
        -- later than the tick, the list holds what the tick shows, and some more.
        RETURN QUERY
        WITH said AS MATERIALIZED (
            SELECT b.grp, b.ranking >> 36 AS board_id, p.row
            FROM unnest(v_batch) AS b CROSS JOIN LATERAL unnest(b.packed) AS p (row)
            WHERE b.key_bytes = -1
        ), named AS MATERIALIZED (
            SELECT s.row, m.member, truerank.names_of(m.member) AS names
            FROM (SELECT DISTINCT substr(s.row, 11) AS row FROM said AS s) AS s
            CROSS JOIN LATERAL (SELECT convert_from(s.row, 'UTF8') AS member) AS m
        )
        SELECT s.grp, r.ranking, 0, array_agg('m'::bytea || int8send(0) || n.row),
               NULL::boolean, NULL::bigint, NULL::pg_snapshot, NULL::bigint, NULL::text,
               truerank.equal_bytes(r.ranking)
        FROM said AS s
        JOIN named AS n ON n.row = substr(s.row, 11)
        JOIN truerank.board AS b ON b.grp = s.grp AND s.board_id IN (0, b.id)
        CROSS JOIN LATERAL (
            WITH known AS MATERIALIZED (
                SELECT x.ranking FROM truerank.member_rankings(n.member, b.id) AS x (ranking)
            )
            SELECT k.ranking FROM known AS k
            UNION
            SELECT c.cohort FROM known AS k
            JOIN truerank.cohort_member AS c ON c.season = k.ranking AND c.member = n.member
            WHERE c.cohort IS NOT NULL
        ) AS r
        -- As truerank.has_history, which would cost several times as much for each pair.
        WHERE isfinite(b.history_from) OR EXISTS (
            SELECT FROM unnest(n.names) AS u (name)
            CROSS JOIN LATERAL (
                SELECT FROM truerank.event AS e
                WHERE e.board_id = b.id AND e.member = u.name
                ORDER BY e.occurred_at LIMIT 1
            ) AS e)
        GROUP BY s.grp, r.ranking;
    END IF;
    RETURN QUERY SELECT b.grp, b.ranking, b.key_bytes, b.packed,
                        NULL::boolean, NULL::bigint, NULL::pg_snapshot, NULL::bigint, NULL::text,
                        truerank.equal_bytes(b.ranking)
                 FROM unnest(v_batch) AS b WHERE b.key_bytes <> -1;
END
$$;
