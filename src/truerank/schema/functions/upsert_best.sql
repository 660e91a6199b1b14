-- upsert_best: keep each member's best row on a board whose operator is best.
--
-- The sort key decides alone: the best row first, and among equal rows the first event that
-- attained it. Whatever the order of arrival, the least sort key of all events remains.
-- Locks:   standings in order of ranking and member.
-- Returns: what changed; version 0 where the row is new and has yet to draw one.
CREATE OR REPLACE FUNCTION truerank.upsert_best(
    p_board truerank.board, p_seasons truerank.season[], p_members text[], p_values bigint[],
    p_ties bigint[], p_at timestamptz[], p_positions bigint[]
) RETURNS SETOF truerank.changed
LANGUAGE plpgsql AS $$
DECLARE
    v_runs truerank.season_run[] := truerank.season_runs(p_seasons);
BEGIN
    RETURN QUERY
    INSERT INTO truerank.standing AS s
        (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
    SELECT DISTINCT ON (r.ranking, e.member COLLATE "C")
           r.ranking, e.member, e.value, e.ties, 0, e.at, e.position, true, e.sort_key
    FROM truerank.event_rows(p_board, p_members, p_values, p_ties, p_at, p_positions) AS e
    CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
    ORDER BY r.ranking, e.member COLLATE "C", e.sort_key
    ON CONFLICT (ranking, member) DO UPDATE SET
        score = excluded.score,
        ties = excluded.ties,
        version = nextval('truerank.version'),
        event_at = excluded.event_at,
        event_position = excluded.event_position,
        sort_key = excluded.sort_key
    WHERE excluded.sort_key < s.sort_key
    RETURNING s.ranking, s.member, s.sort_key, s.version, s.score;
END
$$;
