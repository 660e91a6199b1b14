-- upsert_sum: add events to the standings of a board whose operator is sum.
--
-- Takes only events that were inserted just now. Whatever the order of arrival: the score is
-- the sum of all values, reached at the last event whose row isn't zero. While there is none,
-- reached at the first. Tie-breaks add up like the score.
-- Locks:   standings in order of ranking and member.
-- Returns: what changed; version 0 where the row is new and has yet to draw one.
-- Raises:  numeric_value_out_of_range, which the caller turns into refusals.
CREATE OR REPLACE FUNCTION truerank.upsert_sum(
    p_board truerank.board, p_seasons truerank.season[], p_members text[], p_values bigint[],
    p_ties bigint[], p_at timestamptz[], p_positions bigint[]
) RETURNS SETOF truerank.changed
LANGUAGE plpgsql AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
    v_row_bytes integer := 8 * (1 + v_tie_n);
    v_runs truerank.season_run[];
    -- Where every event falls into every season, as most do, what is folded for one is true of all.
    v_alike boolean := NOT EXISTS (
        SELECT FROM (SELECT min(a) AS first, max(a) AS last FROM unnest(p_at) AS a) AS e
        JOIN unnest(p_seasons) AS r ON e.first < r.starts_at OR e.last >= r.ends_at);
BEGIN
    v_runs := truerank.season_runs(CASE WHEN v_alike THEN p_seasons[:1] ELSE p_seasons END);
    RETURN QUERY
    WITH folded AS (
        SELECT r.ranking, e.member,
               sum(e.value)::bigint AS score,
               CASE WHEN v_tie_n > 0 THEN truerank.sum_ties(v_tie_n,
                   sum(p_ties[(e.ord - 1) * v_tie_n + 1]), sum(p_ties[(e.ord - 1) * v_tie_n + 2]),
                   sum(p_ties[(e.ord - 1) * v_tie_n + 3]), sum(p_ties[(e.ord - 1) * v_tie_n + 4]))
               END AS ties,
               max(ARRAY[truerank.instant_us(e.at), e.position, e.ord]) FILTER (WHERE e.moves)
                   AS last_move,
               min(ARRAY[truerank.instant_us(e.at), e.position, e.ord]) AS first_event
        FROM (
            SELECT u.*, u.value <> 0 OR (v_tie_n > 0 AND EXISTS (
                       SELECT FROM generate_series(1, v_tie_n) AS i
                       WHERE p_ties[(u.ord - 1) * v_tie_n + i] <> 0)) AS moves
            FROM unnest(p_members, p_values, p_at, p_positions)
                WITH ORDINALITY AS u (member, value, at, position, ord)
        ) AS e
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
        GROUP BY r.ranking, e.member
    ), resting AS (
        SELECT f.*, f.last_move IS NOT NULL AS moved,
               p_at[(coalesce(f.last_move, f.first_event))[3]] AS event_at,
               (coalesce(f.last_move, f.first_event))[2] AS event_position
        FROM folded AS f
    ), keyed AS MATERIALIZED (  -- so that no season computes the key again
        SELECT f.*, truerank.sort_key(f.score, p_board.descending,
                   CASE WHEN v_tie_n = 0 THEN ''::bytea
                        ELSE truerank.tie_bytes(f.ties, p_board.tie_descending) END,
                   f.event_at, f.event_position) AS sort_key
        FROM resting AS f
    )
    INSERT INTO truerank.standing AS s
        (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
    SELECT coalesce(r.ranking, f.ranking), f.member, f.score, f.ties, 0, f.event_at,
           f.event_position, f.moved, f.sort_key
    FROM keyed AS f
    LEFT JOIN unnest(CASE WHEN v_alike THEN p_seasons END) AS r ON true
    ORDER BY 1, f.member COLLATE "C"
    ON CONFLICT (ranking, member) DO UPDATE SET
        score = s.score + excluded.score,
        ties = CASE WHEN v_tie_n > 0 THEN truerank.add_ties(s.ties, excluded.ties) END,
        version = nextval('truerank.version'),
        moved = s.moved OR excluded.moved,
        (event_at, event_position, sort_key) = (
            SELECT CASE WHEN n.later THEN excluded.event_at ELSE s.event_at END,
                   CASE WHEN n.later THEN excluded.event_position ELSE s.event_position END,
                   truerank.signed_bytes(CASE WHEN p_board.descending
                       THEN ~(s.score + excluded.score) ELSE s.score + excluded.score END)
                   || CASE WHEN v_tie_n = 0 THEN ''::bytea ELSE truerank.tie_bytes(
                          truerank.add_ties(s.ties, excluded.ties), p_board.tie_descending) END
                   || substr(CASE WHEN n.later THEN excluded.sort_key ELSE s.sort_key END,
                             v_row_bytes + 1)
            FROM (SELECT CASE
                      WHEN s.moved AND NOT excluded.moved THEN false
                      WHEN excluded.moved AND NOT s.moved THEN true
                      WHEN excluded.moved THEN (excluded.event_at, excluded.event_position)
                          > (s.event_at, s.event_position)
                      ELSE (excluded.event_at, excluded.event_position)
                          < (s.event_at, s.event_position)
                  END AS later) AS n)
    WHERE excluded.moved
       OR (NOT s.moved AND (excluded.event_at, excluded.event_position)
                         < (s.event_at, s.event_position))
    RETURNING s.ranking, s.member, s.sort_key, s.version, s.score;
END
$$;
