-- upsert_latest: let the last event decide on a board whose operator is latest.
--
-- Last is by the events' own order, never by arrival. The score was reached at the first of the
-- unbroken run of equal rows that ends at the last event. Where one comparison can't tell that
-- (several events of one member at once, or one that falls before what is counted), the member's
-- season is recomputed from its events, after its row was locked.
-- Locks:   standings in order of ranking and member.
-- Returns: what changed; version 0 where the row is new and has yet to draw one.
CREATE OR REPLACE FUNCTION truerank.upsert_latest(
    p_board truerank.board, p_seasons truerank.season[], p_members text[], p_values bigint[],
    p_ties bigint[], p_at timestamptz[], p_positions bigint[]
) RETURNS SETOF truerank.changed
LANGUAGE plpgsql AS $$
DECLARE
    v_row_bytes integer := 8 * (1 + cardinality(p_board.tie_names));
    v_runs truerank.season_run[] := truerank.season_runs(p_seasons);
    v_direct truerank.changed[];
    v_rankings bigint[];
    v_members text[];
BEGIN
    WITH upserted AS (
        INSERT INTO truerank.standing AS s
            (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
        SELECT DISTINCT ON (r.ranking, e.member COLLATE "C")
               r.ranking, e.member, e.value, e.ties, 0, e.at, e.position, true, e.sort_key
        FROM truerank.event_rows(p_board, p_members, p_values, p_ties, p_at, p_positions) AS e
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
        ORDER BY r.ranking, e.member COLLATE "C", e.at DESC, e.position DESC
        ON CONFLICT (ranking, member) DO UPDATE SET
            score = excluded.score,
            ties = excluded.ties,
            version = nextval('truerank.version'),
            event_at = excluded.event_at,
            event_position = excluded.event_position,
            sort_key = CASE WHEN substr(excluded.sort_key, 1, v_row_bytes)
                               = substr(s.sort_key, 1, v_row_bytes)
                            THEN s.sort_key ELSE excluded.sort_key END
        WHERE (excluded.event_at, excluded.event_position) > (s.event_at, s.event_position)
        RETURNING s.ranking, s.member, s.sort_key, s.version, s.score
    )
    SELECT array_agg((u.ranking, u.member, u.sort_key, u.version, u.score)::truerank.changed)
    INTO v_direct FROM upserted AS u;

    SELECT array_agg(g.ranking ORDER BY g.ranking, g.member COLLATE "C"),
           array_agg(g.member ORDER BY g.ranking, g.member COLLATE "C")
    INTO v_rankings, v_members
    FROM (
        SELECT r.ranking, e.member
        FROM unnest(p_members, p_at) AS e (member, at)
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
        LEFT JOIN truerank.changed_rows(v_direct) AS d
          ON d.ranking = r.ranking AND d.member = e.member
        GROUP BY r.ranking, e.member
        HAVING count(*) > 1 OR count(d.ranking) = 0
    ) AS g;

    RETURN QUERY
    SELECT d.* FROM unnest(v_direct) AS d
    WHERE NOT EXISTS (SELECT FROM unnest(v_rankings, v_members) AS g (ranking, member)
                      WHERE g.ranking = d.ranking AND g.member = d.member);
    IF v_rankings IS NOT NULL THEN
        RETURN QUERY
        SELECT c.* FROM truerank.recompute_standings(p_board, p_seasons, v_rankings, v_members)
            AS c;
    END IF;
END
$$;
