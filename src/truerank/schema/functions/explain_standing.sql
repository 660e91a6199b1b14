-- explain_standing: the events of a member in one season, in their order, and how each counts.
--
-- state: counted; void; amended (value is what counts, first_value what was submitted).
-- p_after continues after a row's position in that order; null at the start.
CREATE OR REPLACE FUNCTION truerank.explain_standing(
    p_board_id integer, p_ranking bigint, p_member text, p_limit integer,
    p_after_at timestamptz DEFAULT NULL, p_after_position bigint DEFAULT NULL
) RETURNS TABLE (
    event_id text, occurred_at timestamptz, received_at timestamptz, "position" bigint,
    value numeric, first_value numeric, ties bigint[], state text, source text, metadata jsonb
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_season truerank.season;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_board_id;
    v_season := truerank.season_of_ranking(v_board, p_ranking);
    RETURN QUERY
    SELECT coalesce(e.event_text, e.event_uuid::text), e.occurred_at, e.received_at, e.position,
           truerank.in_units(coalesce(a.value, e.value), v_board.decimals),
           truerank.in_units(e.value, v_board.decimals),
           CASE WHEN a.value IS NULL THEN e.ties ELSE a.ties END,
           CASE WHEN v.voided THEN 'void' WHEN a.value IS NOT NULL THEN 'amended'
                ELSE 'counted' END,
           e.source, e.metadata
    FROM truerank.event AS e
    LEFT JOIN LATERAL (
        SELECT c.value, c.ties FROM truerank.event AS c
        WHERE c.board_id = e.board_id AND c.target = e.event_uuid AND c.kind = 'a'
        ORDER BY c.position DESC LIMIT 1
    ) AS a ON true
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM truerank.event AS c
                       WHERE c.board_id = e.board_id AND c.target = e.event_uuid
                         AND c.kind = 'v') AS voided
    ) AS v
    WHERE e.board_id = p_board_id AND e.member = p_member AND e.kind = 's'
      AND e.occurred_at >= v_season.starts_at AND e.occurred_at < v_season.ends_at
      AND (p_after_at IS NULL OR (e.occurred_at, e.position) > (p_after_at, p_after_position))
    ORDER BY e.occurred_at, e.position
    LIMIT p_limit;
END
$$;
