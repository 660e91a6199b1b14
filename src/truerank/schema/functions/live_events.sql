-- live_events: the score events of one member in a range of instants, as they count now.
--
-- Without those that were voided, and with the values of the last amendment of each.
CREATE OR REPLACE FUNCTION truerank.live_events(
    p_board_id integer, p_member text, p_starts_at timestamptz, p_ends_at timestamptz
) RETURNS TABLE (value bigint, ties bigint[], at timestamptz, "position" bigint)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(a.value, e.value), CASE WHEN a.value IS NULL THEN e.ties ELSE a.ties END,
           e.occurred_at, e.position
    FROM truerank.event AS e
    LEFT JOIN LATERAL (
        SELECT c.value, c.ties FROM truerank.event AS c
        WHERE c.board_id = e.board_id AND c.target = e.event_uuid AND c.kind = 'a'
        ORDER BY c.position DESC LIMIT 1
    ) AS a ON true
    WHERE e.board_id = p_board_id AND e.member = p_member AND e.kind = 's'
      AND e.occurred_at >= p_starts_at AND e.occurred_at < p_ends_at
      -- Not NOT EXISTS: while hardly an event has a void, the planner would turn that into a join
      -- that reads all voids of the board for each event.
      AND (SELECT true FROM truerank.event AS v
           WHERE v.board_id = e.board_id AND v.target = e.event_uuid AND v.kind = 'v' LIMIT 1)
          IS NULL
$$;
