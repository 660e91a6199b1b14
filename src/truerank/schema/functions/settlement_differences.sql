-- settlement_differences: where the stored settlements of a season contradict themselves.
--
-- Of every revision, of the season and of its cohorts. All must be empty: a final season has all
-- revisions up to its last; population, different, total and digest are those of the stored places;
-- every place has the score and the tie-breaks of its sort key, and the three ranks that the order
-- of the sort keys gives; awards are given as the rules say of the newest revision. Places are walked
-- along their index, so memory is bounded by work_mem.
-- Returns: cohort null: the season itself; expected: what was announced, or what order, sort keys
--          and rules give. At most p_limit rows of each kind for each revision and rule.
CREATE OR REPLACE FUNCTION truerank.settlement_differences(p_season bigint, p_limit integer)
RETURNS TABLE (cohort integer, revision integer, subject text, expected text, found text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_board truerank.board;
    v_row_bytes integer;
    v_turned bigint;
    v_each record;
    v_rule truerank.award_rule;
    v_in_force boolean;
    v_revision integer := (SELECT r.revision FROM truerank.ranking AS r WHERE r.id = p_season);
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_season >> 36;
    v_row_bytes := 8 * (1 + cardinality(v_board.tie_names));
    v_turned := CASE WHEN v_board.descending THEN -1 ELSE 0 END;  -- n # -1 is ~n
    FOR v_each IN
        SELECT k.cohort, r.id, n.revision, s.ranking IS NOT NULL AS stored, s.population,
               s.different, s.total, s.digest
        FROM (SELECT NULL::integer AS cohort, p_season AS ranking
              UNION ALL
              SELECT c.number, c.ranking FROM truerank.cohort AS c WHERE c.season = p_season) AS k
        JOIN truerank.ranking AS r ON r.id = k.ranking AND r.revision IS NOT NULL
        CROSS JOIN LATERAL (
            SELECT i AS revision FROM generate_series(1, r.revision) AS i
            UNION
            SELECT x.revision FROM truerank.settlement AS x WHERE x.ranking = r.id) AS n
        LEFT JOIN truerank.settlement AS s ON s.ranking = r.id AND s.revision = n.revision
        ORDER BY k.cohort NULLS FIRST, n.revision DESC
    LOOP
        RETURN QUERY
        SELECT v_each.cohort, v_each.revision, x.subject, x.expected, x.found
        FROM truerank.settlement_digest(v_each.id, v_each.revision) AS d
        CROSS JOIN LATERAL (VALUES
            ('population', v_each.population::text, d.population::text),
            ('different', v_each.different::text, d.different::text),
            ('total', v_each.total::text, d.total::text),
            ('digest', encode(v_each.digest, 'hex'), encode(d.digest, 'hex'))
        ) AS x (subject, expected, found)
        WHERE x.expected IS DISTINCT FROM x.found
        LIMIT p_limit;

        RETURN QUERY
        SELECT v_each.cohort, v_each.revision, 'place ' || q.n || ': ' || x.subject, x.expected,
               x.found
        FROM (
            SELECT p.*, max(CASE WHEN p.better THEN p.n END) OVER so_far AS first,
                   count(*) FILTER (WHERE p.better) OVER so_far AS groups
            FROM (
                SELECT r.ordinal, r.competition, r.dense, r.score, r.ties, r.sort_key,
                       row_number() OVER in_order AS n,
                       lag(r.sort_key) OVER in_order AS before,
                       substr(r.sort_key, 1, v_row_bytes) IS DISTINCT FROM
                           lag(substr(r.sort_key, 1, v_row_bytes)) OVER in_order AS better
                FROM truerank.settlement_row AS r
                WHERE r.ranking = v_each.id AND r.revision = v_each.revision
                WINDOW in_order AS (ORDER BY r.ordinal)
            ) AS p
            WINDOW so_far AS (ORDER BY p.ordinal ROWS UNBOUNDED PRECEDING)
        ) AS q
        CROSS JOIN LATERAL (
            SELECT truerank.number_at(q.sort_key, 1) # v_turned AS in_key,
                   truerank.tie_bytes(q.ties, v_board.tie_descending) AS ties
        ) AS v
        CROSS JOIN LATERAL (VALUES
            ('ordinal rank', q.n::text, q.ordinal::text),
            ('competition rank', q.first::text, q.competition::text),
            ('dense rank', q.groups::text, q.dense::text),
            ('order', CASE WHEN q.sort_key < q.before THEN 'after ' || encode(q.before, 'hex') END,
             CASE WHEN q.sort_key < q.before THEN encode(q.sort_key, 'hex') END),
            ('score', v.in_key::text, q.score::text),
            ('tie-breaks', encode(substr(q.sort_key, 9, v_row_bytes - 8), 'hex'),
             encode(v.ties, 'hex'))
        ) AS x (subject, expected, found)
        WHERE x.expected IS DISTINCT FROM x.found
          -- At once, as most places have no difference: texts are made of the others only.
          AND ((q.ordinal, q.competition, q.dense, q.score)
                   <> (q.n, q.first, q.groups, v.in_key)
               OR v.ties <> substr(q.sort_key, 9, v_row_bytes - 8) OR q.sort_key < q.before)
        LIMIT p_limit;
    END LOOP;
    FOR v_rule IN
        SELECT r.* FROM truerank.award_rule AS r WHERE r.board_id = v_board.id ORDER BY r.id
    LOOP
        v_in_force := EXISTS (
            SELECT FROM truerank.settlement_rule AS s
            WHERE s.ranking = p_season AND s.rule_id = v_rule.id);
        RETURN QUERY
        SELECT NULL::integer, v_revision,
               'award ' || v_rule.name || ' of ' || coalesce(c.member, a.member),
               'rank ' || c.rank || ' by ' || c.score, 'rank ' || a.rank || ' by ' || a.score
        FROM (SELECT x.* FROM truerank.award_claims(
                  v_rule, v_board.descending, p_season, v_revision) AS x WHERE v_in_force) AS c
        FULL JOIN (SELECT y.member, y.rank, y.score FROM truerank.award AS y
                   WHERE y.ranking = p_season AND y.rule_id = v_rule.id
                     AND y.state = 'given') AS a ON a.member = c.member
        WHERE (c.rank, c.score) IS DISTINCT FROM (a.rank, a.score)
        LIMIT p_limit;
    END LOOP;
END
$$;
