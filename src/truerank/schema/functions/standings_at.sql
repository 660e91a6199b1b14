-- standings_at: sort keys of all members of a season as its standings were at an instant.
--
-- Folds what events_at gives as fold_events does, for all members at once, to the same bytes.
-- Without those who are hidden, banned or merged today; see events_at for those who were deleted, and
-- for p_seen. p_names: only from what is stored under these ids.
-- Cost: linear in the events of the board, and those of the season are sorted, on disk where they
-- don't fit into work_mem.
CREATE OR REPLACE FUNCTION truerank.standings_at(
    p_board truerank.board, p_season truerank.season, p_at timestamptz,
    p_seen pg_snapshot DEFAULT NULL, p_names text[] DEFAULT NULL
) RETURNS TABLE (member text, sort_key bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_withheld CONSTANT text[] := ARRAY(
        SELECT DISTINCT s.member FROM truerank.member_state AS s
        WHERE s.board_id IN (0, p_board.id) AND s.state IN ('hidden', 'banned', 'merged'));
    v_tie_n CONSTANT integer := cardinality(p_board.tie_names);
BEGIN
    IF p_board.operator = 'sum' THEN
        RETURN QUERY
        SELECT f.member, truerank.signed_bytes(CASE WHEN p_board.descending
                   THEN ~f.score ELSE f.score END)
               || CASE WHEN v_tie_n = 0 THEN ''::bytea
                       ELSE truerank.tie_bytes(f.ties, p_board.tie_descending) END
               || truerank.signed_bytes(f.reached[1]) || truerank.signed_bytes(f.reached[2])
        FROM (
            SELECT e.member, sum(e.value)::bigint AS score,
                   CASE WHEN v_tie_n > 0 THEN truerank.sum_ties(
                       v_tie_n, sum(e.ties[1]), sum(e.ties[2]), sum(e.ties[3]), sum(e.ties[4])) END
                       AS ties,
                   coalesce(
                       max(ARRAY[truerank.instant_us(e.at), e.position]) FILTER (WHERE e.moves),
                       min(ARRAY[truerank.instant_us(e.at), e.position])) AS reached
            FROM truerank.events_at(p_board.id, p_season.ranking, p_season.starts_at,
                                    p_season.ends_at, p_at, p_seen, p_names) AS e
            WHERE e.member NOT IN (SELECT w FROM unnest(v_withheld) AS w)
            GROUP BY e.member
        ) AS f;
    ELSIF p_board.operator = 'best' THEN
        RETURN QUERY
        SELECT DISTINCT ON (f.member COLLATE "C") f.member, f.key
        FROM (
            SELECT e.member, truerank.sort_key(
                       e.value, p_board.descending,
                       CASE WHEN v_tie_n = 0 THEN ''::bytea
                            ELSE truerank.tie_bytes(e.ties, p_board.tie_descending) END,
                       e.at, e.position) AS key
            FROM truerank.events_at(p_board.id, p_season.ranking, p_season.starts_at,
                                    p_season.ends_at, p_at, p_seen, p_names) AS e
            WHERE e.member NOT IN (SELECT w FROM unnest(v_withheld) AS w)
        ) AS f
        ORDER BY f.member COLLATE "C", f.key;
    ELSE
        RETURN QUERY
        SELECT DISTINCT ON (r.member) r.member, truerank.sort_key(
                   r.value, p_board.descending,
                   CASE WHEN v_tie_n = 0 THEN ''::bytea
                        ELSE truerank.tie_bytes(r.ties, p_board.tie_descending) END,
                   r.reached_at, r.reached_position)
        FROM (
            SELECT l.*, bool_and((l.value, l.ties) IS NOT DISTINCT FROM (l.last_value, l.last_ties))
                            OVER (PARTITION BY l.member ORDER BY l.at DESC, l.position DESC)
                            AS unbroken
            FROM (
                SELECT e.member COLLATE "C" AS member, e.value, e.ties, e.at, e.position,
                       e.reached_at, e.reached_position,
                       first_value(e.value) OVER run AS last_value,
                       first_value(e.ties) OVER run AS last_ties
                FROM truerank.events_at(p_board.id, p_season.ranking, p_season.starts_at,
                                        p_season.ends_at, p_at, p_seen, p_names) AS e
                WHERE e.member NOT IN (SELECT w FROM unnest(v_withheld) AS w)
                WINDOW run AS (PARTITION BY e.member COLLATE "C" ORDER BY e.at DESC, e.position DESC)
            ) AS l
        ) AS r
        WHERE r.unbroken
        ORDER BY r.member, r.reached_at, r.reached_position;
    END IF;
END
$$;
