-- awards: what members got, in the order in which it was given or withdrawn, after a change.
--
-- For operators: with everybody's id. p_board_id or p_ranking null: of all. p_cohort: the ranking of
-- a cohort of that season, only those of its members. p_open: only those that aren't acknowledged.
-- Read on after the last change; an award that changes comes again, with the same id, under another
-- change.
-- acknowledged_state: what was dealt with before, given or withdrawn. Whoever pays has to do so
-- where state is given and this isn't, and takes back where state is withdrawn and this is given.
CREATE OR REPLACE FUNCTION truerank.awards(
    p_board_id integer, p_ranking bigint, p_after bigint, p_limit integer, p_open boolean,
    p_cohort bigint DEFAULT NULL
) RETURNS TABLE (change bigint, id bigint, board text, season text, rule text, member text,
                 state text, revision integer, rank bigint, score numeric, changed_at timestamptz,
                 acknowledged_at timestamptz, acknowledged_by text, acknowledged_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.change, a.id, b.key, k.season, r.name, a.member, a.state, a.revision, a.rank,
           truerank.in_units(a.score, b.decimals), a.changed_at, a.acknowledged_at,
           a.acknowledged_by, a.acknowledged_state
    FROM (  -- each by its index, and no more rows than are asked for
        (SELECT x.* FROM truerank.award AS x
         WHERE p_open AND x.change > p_after AND x.acknowledged_at IS NULL
           AND (p_board_id IS NULL OR x.ranking >= p_board_id::bigint << 36
                                  AND x.ranking < (p_board_id::bigint + 1) << 36)
           AND (p_ranking IS NULL OR x.ranking = p_ranking)
           AND (p_cohort IS NULL OR EXISTS (
               SELECT FROM truerank.cohort_member AS m
               WHERE m.season = x.ranking AND m.member = x.member AND m.cohort = p_cohort))
           AND EXISTS (SELECT FROM truerank.board AS b
                       WHERE b.id = x.ranking >> 36 AND b.deleted_at IS NULL)
         ORDER BY x.change LIMIT p_limit)
        UNION ALL
        (SELECT x.* FROM truerank.award AS x
         WHERE NOT p_open AND x.change > p_after
           AND (p_board_id IS NULL OR x.ranking >= p_board_id::bigint << 36
                                  AND x.ranking < (p_board_id::bigint + 1) << 36)
           AND (p_ranking IS NULL OR x.ranking = p_ranking)
           AND (p_cohort IS NULL OR EXISTS (
               SELECT FROM truerank.cohort_member AS m
               WHERE m.season = x.ranking AND m.member = x.member AND m.cohort = p_cohort))
           AND EXISTS (SELECT FROM truerank.board AS b
                       WHERE b.id = x.ranking >> 36 AND b.deleted_at IS NULL)
         ORDER BY x.change LIMIT p_limit)
    ) AS a
    JOIN truerank.award_rule AS r ON r.id = a.rule_id
    JOIN truerank.board AS b ON b.id = r.board_id
    JOIN truerank.ranking AS k ON k.id = a.ranking
    ORDER BY a.change
$$;
