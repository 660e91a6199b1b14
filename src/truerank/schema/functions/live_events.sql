-- live_events: the score events of some members in a range of instants, as they count now.
--
-- Of one member, that is, under all the ids it has: see truerank.names_of. Events that ended, when
-- it was reset or deleted, don't count.
-- Without those that were voided, and with the values of the last amendment of each. What was
-- forgotten comes first, as one row: it counts like the events it stands for.
-- Where the caller says so, as they counted then: with corrections of positions up to p_corrected_to
-- only, and with events that have ended after p_ended_after.
-- moves: the row isn't zero. reached_at and reached_position: the event's own, but for a
-- forgotten run of equal rows those of its first.
CREATE OR REPLACE FUNCTION truerank.live_events(
    p_board_id integer, p_ranking bigint, p_names text[], p_starts_at timestamptz,
    p_ends_at timestamptz, p_corrected_to bigint DEFAULT 9223372036854775807,
    p_ended_after timestamptz DEFAULT 'infinity'
) RETURNS TABLE (value bigint, ties bigint[], at timestamptz, "position" bigint, moves boolean,
                 reached_at timestamptz, reached_position bigint)
LANGUAGE sql STABLE AS $$
    SELECT o.score, o.ties, o.event_at, o.event_position, o.moved, o.reached_at,
           o.reached_position
    FROM truerank.opening AS o WHERE o.ranking = p_ranking AND o.member = ANY (p_names)
    UNION ALL
    SELECT c.value, c.ties, e.occurred_at, e.position,
           coalesce(c.value <> 0 OR 0 <> ANY (c.ties), false), e.occurred_at, e.position
    FROM truerank.event AS e
    LEFT JOIN LATERAL (
        SELECT c.value, c.ties FROM truerank.event AS c
        WHERE c.board_id = e.board_id AND c.target = e.event_uuid AND c.kind = 'a'
          AND c.position <= p_corrected_to
        ORDER BY c.position DESC LIMIT 1
    ) AS a ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(a.value, e.value) AS value,
               CASE WHEN a.value IS NULL THEN e.ties ELSE a.ties END AS ties) AS c
    WHERE e.board_id = p_board_id AND e.member = ANY (p_names)
      AND e.kind = 's' AND (e.ended_at IS NULL OR e.ended_at > p_ended_after)
      AND e.occurred_at >= p_starts_at AND e.occurred_at < p_ends_at
      -- Not NOT EXISTS: while hardly an event has a void, the planner would turn that into a join
      -- that reads all voids of the board for each event.
      AND (SELECT true FROM truerank.event AS v
           WHERE v.board_id = e.board_id AND v.target = e.event_uuid AND v.kind = 'v'
             AND v.position <= p_corrected_to LIMIT 1)
          IS NULL
$$;
