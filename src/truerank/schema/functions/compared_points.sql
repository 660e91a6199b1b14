-- compared_points: what the source says of some members, as of the snapshot that a copy has reached.
--
-- p_ranking null: only of their states in the group. p_since: what the copy had reached when the
-- members were first looked at; what was logged between the two is what it must hold by now.
-- p_tick_ids and p_nonces name ticks that must exist for a comparison to mean anything, as in
-- read_batch; they are looked up in the snapshot of the rows.
-- Returns: per member, by its place in p_members: its standing as it is now, or nulls; its states (13
--          bytes each as the copy keeps them: board, version, letter), that of all boards first; the
--          newest version logged after p_since and reached by p_until (key null: it went), or null;
--          whether a change of its standing, or of its states, is on its way to the copy. In each row
--          doubt: null, or why this server isn't the source of the copy. With ord 0 the floor of
--          retained ticks, and source: cluster and timeline.
CREATE OR REPLACE FUNCTION truerank.compared_points(
    p_since pg_snapshot, p_until pg_snapshot, p_grp smallint, p_ranking bigint, p_members text[],
    p_epoch uuid, p_tick_ids bigint[], p_nonces uuid[]
) RETURNS TABLE (ord integer, version bigint, sort_key bytea, states bytea, logged_version bigint,
                 logged_key bytea, under_way boolean, state_under_way boolean,
               doubt text, source text, floor_tick bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_from xid8 := pg_snapshot_xmax(p_since);
    v_board integer := p_ranking >> 36;
    v_rankings bigint[] := ARRAY[p_ranking, p_ranking >> 36 << 36, 0];
BEGIN
    RETURN QUERY
    WITH logged AS MATERIALIZED (
        SELECT o.ranking, o.member, o.version, o.op, o.sort_key,
               pg_visible_in_snapshot(o.xid, p_until) AS reached
        FROM truerank.outbox AS o
        WHERE o.xid >= v_from AND o.grp = p_grp AND o.member = ANY (p_members)
          AND CASE WHEN p_ranking IS NULL THEN o.op = 's' ELSE o.ranking = ANY (v_rankings) END
        UNION ALL
        SELECT o.ranking, o.member, o.version, o.op, o.sort_key,
               pg_visible_in_snapshot(o.xid, p_until)
        FROM truerank.outbox_of(p_since) AS o
        WHERE o.grp = p_grp AND o.member = ANY (p_members)
          AND CASE WHEN p_ranking IS NULL THEN o.op = 's' ELSE o.ranking = ANY (v_rankings) END
    ), newest AS MATERIALIZED (
        SELECT DISTINCT ON (l.member) l.member, l.version,
               CASE WHEN l.op = 'p' THEN l.sort_key END AS sort_key
        FROM logged AS l WHERE l.ranking = p_ranking AND l.op <> 's' AND l.reached
        ORDER BY l.member, l.version DESC
    ), waiting AS MATERIALIZED (
        SELECT l.member, bool_or(l.op <> 's') AS standing, bool_or(l.op = 's') AS state
        FROM logged AS l WHERE NOT l.reached GROUP BY l.member
    ), doubtful AS MATERIALIZED (
        SELECT CASE
            WHEN c.system_identifier <> s.system_identifier THEN 'another cluster'
            WHEN s.epoch <> p_epoch THEN 'another epoch'
            WHEN pg_snapshot_xmax(p_until) > pg_snapshot_xmax(pg_current_snapshot())
                THEN 'a snapshot of the copy lies in the future'
            WHEN (SELECT count(*) FROM unnest(p_tick_ids, p_nonces) AS w (id, nonce)
                  JOIN truerank.tick AS t ON t.id = w.id AND t.nonce = w.nonce)
                 <> cardinality(p_tick_ids) THEN 'ticks of the copy are gone'
            END AS reason
        FROM truerank.setting AS s, pg_control_system() AS c
    )
    SELECT u.ord::integer, s.version, s.sort_key,
           (SELECT string_agg(int4send(m.board_id) || int8send(m.version)
                              || convert_to(truerank.state_letter(m.state), 'UTF8'), ''
                              ORDER BY m.board_id)
            FROM truerank.member_state AS m
            WHERE m.member = u.member AND m.state IN ('hidden', 'banned', 'merged')
              AND CASE WHEN p_ranking IS NULL
                       THEN m.board_id = 0
                            OR EXISTS (SELECT FROM truerank.board AS b
                                       WHERE b.id = m.board_id AND b.grp = p_grp)
                       ELSE m.board_id IN (0, v_board) END),
           n.version, n.sort_key, coalesce(w.standing, false), coalesce(w.state, false), d.reason, NULL::text, NULL::bigint
    FROM unnest(p_members) WITH ORDINALITY AS u (member, ord)
    CROSS JOIN doubtful AS d
    LEFT JOIN truerank.standing AS s ON s.ranking = p_ranking AND s.member = u.member
        AND EXISTS (SELECT FROM truerank.board AS b WHERE b.id = v_board AND b.grp = p_grp)
    LEFT JOIN newest AS n ON n.member = u.member
    LEFT JOIN waiting AS w ON w.member = u.member;

    -- Only after the rows: a turn of the ring in between would have taken rows unread.
    ord := 0;
    doubt := CASE WHEN pg_is_in_recovery() THEN 'a standby' END;
    source := CASE WHEN doubt IS NULL THEN truerank.wal_source() END;
    SELECT r.floor_tick INTO floor_tick FROM truerank.ring AS r;
    RETURN NEXT;
END
$$;
