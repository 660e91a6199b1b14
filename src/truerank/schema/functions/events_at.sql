-- events_at: the score events of one season as they counted at an instant, whoever's they are.
--
-- As live_events, of all members at once: what had come by p_at (received_at), without what had
-- been voided by then, with the values of the last amendment by then, and with what has ended
-- since, unless its member was deleted or erased. Forgotten events come as one row each member: see
-- history_exact_from. member: for whom they count today.
-- p_seen: only what this snapshot shows; null: all that has committed.
-- p_names: only what is stored under these ids; null: under all.
-- Reads all events of the board once, or those of these ids.
CREATE OR REPLACE FUNCTION truerank.events_at(
    p_board_id integer, p_ranking bigint, p_starts_at timestamptz, p_ends_at timestamptz,
    p_at timestamptz, p_seen pg_snapshot DEFAULT NULL, p_names text[] DEFAULT NULL
) RETURNS TABLE (member text, value bigint, ties bigint[], at timestamptz, "position" bigint,
                 moves boolean, reached_at timestamptz, reached_position bigint)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(m.merged_into, x.member), x.value, x.ties, x.at, x.position, x.moves,
           x.reached_at, x.reached_position
    FROM (
        SELECT o.member, o.score AS value, o.ties, o.event_at AS at, o.event_position AS position,
               o.moved AS moves, o.reached_at, o.reached_position
        FROM truerank.opening AS o
        WHERE o.ranking = p_ranking AND (p_names IS NULL OR o.member = ANY (p_names))
        UNION ALL
        SELECT e.member, c.value, c.ties, e.occurred_at, e.position,
               coalesce(c.value <> 0 OR 0 <> ANY (c.ties), false), e.occurred_at, e.position
        FROM truerank.event AS e
        LEFT JOIN (
            SELECT DISTINCT ON (x.target) x.target, x.value, x.ties FROM truerank.event AS x
            WHERE x.board_id = p_board_id AND x.target IS NOT NULL AND x.kind = 'a'
              AND x.received_at <= p_at
              AND (p_seen IS NULL OR pg_visible_in_snapshot(x.xid, p_seen))
            ORDER BY x.target, x.position DESC
        ) AS a ON a.target = e.event_uuid
        CROSS JOIN LATERAL (
            SELECT coalesce(a.value, e.value) AS value,
                   CASE WHEN a.value IS NULL THEN e.ties ELSE a.ties END AS ties) AS c
        WHERE e.board_id = p_board_id AND e.kind = 's'
          AND (p_names IS NULL OR e.member = ANY (p_names))
          AND e.occurred_at >= p_starts_at AND e.occurred_at < p_ends_at
          AND e.received_at <= p_at
          AND (p_seen IS NULL OR pg_visible_in_snapshot(e.xid, p_seen))
          AND NOT EXISTS (SELECT FROM truerank.event AS v
                          WHERE v.board_id = p_board_id AND v.target = e.event_uuid
                            AND v.kind = 'v' AND v.received_at <= p_at
                            AND (p_seen IS NULL OR pg_visible_in_snapshot(v.xid, p_seen)))
          AND (e.ended_at IS NULL
               OR e.ended_at > p_at
                  AND e.member NOT IN (SELECT n FROM truerank.erasure AS r, unnest(r.stand_ins) AS n)
                  AND NOT truerank.has_left(p_board_id, e.member, e.ended_at))
    ) AS x
    LEFT JOIN truerank.member AS m ON m.id = x.member AND m.merged_into IS NOT NULL
$$;
