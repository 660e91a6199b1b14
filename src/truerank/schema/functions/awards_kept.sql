-- awards_kept: of the awards of a season by one rule the one of each member: see give_awards.
--
-- owner: who the member is now, where the id was merged into another.
CREATE OR REPLACE FUNCTION truerank.awards_kept(p_ranking bigint, p_rule_id integer)
RETURNS TABLE (id bigint, member text, owner text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (o.owner) a.id, a.member, o.owner
    FROM truerank.award AS a
    LEFT JOIN truerank.member AS m ON m.id = a.member
    CROSS JOIN LATERAL (SELECT coalesce(m.merged_into, a.member) AS owner) AS o
    WHERE a.ranking = p_ranking AND a.rule_id = p_rule_id
    ORDER BY o.owner, a.state, a.acknowledged_state, a.member <> o.owner, a.id
$$;
