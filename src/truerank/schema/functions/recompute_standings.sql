-- recompute_standings: fold standings again from their events, whatever they say now.
--
-- For what a shortcut can't fold: an event out of order, a void, an amendment, a merge.
-- Locks:   the standings, in order of ranking and member, and reads the events in a later
--          statement: whoever committed meanwhile is seen. The rows must exist already.
-- Returns: what changed; a null sort key where no event is left and the standing went.
-- Raises:  numeric_value_out_of_range where a total leaves the board's range, or gets farther from
--          it. Rows with version 0, which a caller just inserted, had no total before.
CREATE OR REPLACE FUNCTION truerank.recompute_standings(
    p_board truerank.board, p_seasons truerank.season[], p_rankings bigint[], p_members text[]
) RETURNS SETOF truerank.changed
LANGUAGE plpgsql AS $$
DECLARE
    v_before numeric[];
BEGIN
    PERFORM FROM truerank.standing AS s
    JOIN unnest(p_rankings, p_members) AS g (ranking, member)
      ON s.ranking = g.ranking AND s.member = g.member
    ORDER BY s.ranking, s.member
    FOR UPDATE OF s;

    IF p_board.operator = 'sum' THEN
        v_before := ARRAY(
            SELECT CASE WHEN s.version <> 0 THEN s.score END
            FROM unnest(p_rankings, p_members) WITH ORDINALITY AS g (ranking, member, ord)
            LEFT JOIN truerank.standing AS s ON s.ranking = g.ranking AND s.member = g.member
            ORDER BY g.ord);
    END IF;

    RETURN QUERY
    UPDATE truerank.standing AS s SET
        score = f.score, ties = f.ties, event_at = f.event_at,
        event_position = f.event_position, moved = f.moved, sort_key = f.sort_key,
        version = nextval('truerank.version')
    FROM unnest(p_rankings, p_members) AS g (ranking, member)
    JOIN truerank.season_rows(p_seasons) AS r ON r.ranking = g.ranking
    CROSS JOIN LATERAL truerank.fold_events(
        p_board, r.ranking, truerank.names_of(g.member), r.starts_at, r.ends_at) AS f
    WHERE s.ranking = g.ranking AND s.member = g.member
    RETURNING s.ranking, s.member, s.sort_key, s.version, s.score;

    -- Rows that the update found no events for.
    RETURN QUERY
    DELETE FROM truerank.standing AS s
    USING unnest(p_rankings, p_members) AS g (ranking, member)
    JOIN truerank.season_rows(p_seasons) AS r ON r.ranking = g.ranking
    WHERE s.ranking = g.ranking AND s.member = g.member
      AND NOT EXISTS (SELECT FROM truerank.live_events(
                          p_board.id, r.ranking, truerank.names_of(g.member), r.starts_at, r.ends_at))
    RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint;

    IF p_board.operator = 'sum' AND EXISTS (
        SELECT FROM truerank.standing AS s
        JOIN unnest(p_rankings, p_members, v_before) AS g (ranking, member, before)
          ON s.ranking = g.ranking AND s.member = g.member
        CROSS JOIN LATERAL truerank.total_bounds(p_board, g.before) AS b
        WHERE s.score NOT BETWEEN b.least AND b.most) THEN
        RAISE numeric_value_out_of_range USING MESSAGE = 'a total would leave the board''s range';
    END IF;
END
$$;
