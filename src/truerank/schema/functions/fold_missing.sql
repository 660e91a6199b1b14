-- fold_missing: compute standings that aren't there from their events; others stay as they are.
--
-- Locks:   the new standings, in order of ranking and member.
-- Returns: what is new; version 0: it has yet to be drawn.
CREATE OR REPLACE FUNCTION truerank.fold_missing(
    p_board truerank.board, p_seasons truerank.season[], p_rankings bigint[], p_members text[]
) RETURNS truerank.changed[]
LANGUAGE sql AS $$
    WITH made AS (
        INSERT INTO truerank.standing AS s
            (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
        SELECT r.ranking, g.member, f.score, f.ties, 0, f.event_at, f.event_position, f.moved,
               f.sort_key
        FROM unnest(p_rankings, p_members) AS g (ranking, member)
        JOIN truerank.season_rows(p_seasons) AS r ON r.ranking = g.ranking
        CROSS JOIN LATERAL truerank.fold_events(
            p_board, r.ranking, truerank.names_of(g.member), r.starts_at, r.ends_at) AS f
        ORDER BY r.ranking, g.member COLLATE "C"
        ON CONFLICT (ranking, member) DO NOTHING
        RETURNING s.ranking, s.member, s.sort_key, s.version, s.score
    )
    SELECT coalesce(array_agg((m.*)::truerank.changed), '{}') FROM made AS m
$$;
