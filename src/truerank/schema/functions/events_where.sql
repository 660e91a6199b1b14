-- events_where: ids of score events of a board that count, by member, source and time.
--
-- For correcting many in bounded slices: a slice that was voided no longer answers, so the caller
-- asks again until nothing comes.
CREATE OR REPLACE FUNCTION truerank.events_where(
    p_board text, p_member text, p_source text, p_from timestamptz, p_until timestamptz,
    p_limit integer
) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(e.event_text, e.event_uuid::text)
    FROM truerank.board AS b
    JOIN truerank.event AS e ON e.board_id = b.id AND e.kind = 's'
     AND e.occurred_at >= b.history_from  -- before, nothing can be corrected
    WHERE b.key = p_board AND b.deleted_at IS NULL
      -- Once for all events: before version 18 PostgreSQL would ask for the names with each.
      AND (p_member IS NULL
           OR e.member = ANY (ARRAY(SELECT unnest(truerank.names_of(p_member)))))
      AND e.ended_at IS NULL
      AND (p_source IS NULL OR e.source = p_source)
      AND (p_from IS NULL OR e.occurred_at >= p_from)
      AND (p_until IS NULL OR e.occurred_at < p_until)
      AND (SELECT true FROM truerank.event AS v  -- as in live_events
           WHERE v.board_id = e.board_id AND v.target = e.event_uuid AND v.kind = 'v' LIMIT 1)
          IS NULL
    LIMIT p_limit
$$;
