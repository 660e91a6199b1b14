-- read_standing: what PostgreSQL holds for one member in one ranking, and the event it rests on.
--
-- The metadata is that of the score that was kept. A member that isn't active is read as well:
-- this is not a public view.
CREATE OR REPLACE FUNCTION truerank.read_standing(
    p_board_id integer, p_ranking bigint, p_member text
) RETURNS TABLE (score numeric, ties bigint[], version bigint, reached_us bigint, event_id text,
               occurred_at timestamptz, metadata jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT truerank.in_units(s.score, b.decimals), s.ties, s.version,
           truerank.number_at(s.sort_key, length(s.sort_key) - 15),
           coalesce(e.event_text, e.event_uuid::text), e.occurred_at, e.metadata
    FROM truerank.board AS b
    JOIN truerank.standing AS s ON s.ranking = p_ranking AND s.member = p_member
    LEFT JOIN truerank.event AS e
      ON e.board_id = b.id AND e.member = ANY (truerank.names_of(s.member)) AND e.occurred_at = s.event_at
     AND e.position = s.event_position AND e.kind = 's'
    WHERE b.id = p_board_id
$$;
