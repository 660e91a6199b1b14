-- explain_standing: the events of a member in one season, in their order, and how each counts.
--
-- state: counted; void; amended (value is what counts, first_value what was submitted); carried:
-- what forgotten events come to, as one row without an event id, before all others. Of a season
-- that ended before the board's history begins, that is the whole standing. ended: the member was
-- reset or deleted since; merged: the id was merged, and they count for another. Events of ids that
-- were merged into it are its own.
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
    IF p_after_at IS NULL THEN
        RETURN QUERY
        SELECT NULL::text, o.event_at, NULL::timestamptz, o.event_position,
               truerank.in_units(o.score, v_board.decimals),
               truerank.in_units(o.score, v_board.decimals), o.ties, 'carried', NULL::text,
               CASE WHEN o.events IS NOT NULL THEN jsonb_build_object('events', o.events) END
        FROM (
            SELECT s.event_at, s.event_position, s.score, s.ties, NULL::bigint AS events
            FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.member = p_member
              AND v_season.ends_at <= v_board.history_from
            UNION ALL
            SELECT c.event_at, c.event_position, c.score, c.ties, c.events
            FROM truerank.opening AS c
            WHERE c.ranking = p_ranking AND c.member = ANY (truerank.names_of(p_member))
              AND v_season.ends_at > v_board.history_from
        ) AS o;
    END IF;
    IF v_season.ends_at <= v_board.history_from THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT coalesce(e.event_text, e.event_uuid::text), e.occurred_at, e.received_at, e.position,
           truerank.in_units(coalesce(a.value, e.value), v_board.decimals),
           truerank.in_units(e.value, v_board.decimals),
           CASE WHEN a.value IS NULL THEN e.ties ELSE a.ties END,
           CASE WHEN v.voided THEN 'void' WHEN e.ended_at IS NOT NULL THEN 'ended'
                WHEN truerank.owner_of(p_member) <> p_member THEN 'merged'
                WHEN a.value IS NOT NULL THEN 'amended'
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
    WHERE e.board_id = p_board_id AND e.member = ANY (truerank.names_of(p_member))
      AND e.kind = 's'
      AND e.occurred_at >= v_season.starts_at AND e.occurred_at < v_season.ends_at
      AND (p_after_at IS NULL OR (e.occurred_at, e.position) > (p_after_at, p_after_position))
    ORDER BY e.occurred_at, e.position
    LIMIT p_limit;
END
$$;
