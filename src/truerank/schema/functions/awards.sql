-- awards: what members got, in the order in which it was given or withdrawn, after a change.
--
-- For operators: with everybody's id. p_board_id or p_ranking null: of all. p_open: only those that
-- aren't acknowledged. Read on after the last change; an award that changes comes again, with the
-- same id, under another change.
CREATE OR REPLACE FUNCTION truerank.awards(
    p_board_id integer, p_ranking bigint, p_after bigint, p_limit integer, p_open boolean
) RETURNS TABLE (change bigint, id bigint, board text, season text, rule text, member text,
                 state text, revision integer, rank bigint, score numeric, changed_at timestamptz,
                 acknowledged_at timestamptz, acknowledged_by text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.change, a.id, b.key, k.season, r.name, a.member, a.state, a.revision, a.rank,
           truerank.in_units(a.score, b.decimals), a.changed_at, a.acknowledged_at,
           a.acknowledged_by
    FROM truerank.award AS a
    JOIN truerank.award_rule AS r ON r.id = a.rule_id
    JOIN truerank.board AS b ON b.id = r.board_id AND b.deleted_at IS NULL
    JOIN truerank.ranking AS k ON k.id = a.ranking
    WHERE a.change > p_after AND (p_board_id IS NULL OR r.board_id = p_board_id)
      AND (p_ranking IS NULL OR a.ranking = p_ranking)
      AND NOT (p_open AND a.acknowledged_at IS NOT NULL)
    ORDER BY a.change LIMIT p_limit
$$;
