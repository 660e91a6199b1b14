-- award_claims: who is entitled to an award by a rule, by the places of a settlement.
--
-- See give_awards for what each kind of rule says.
CREATE OR REPLACE FUNCTION truerank.award_claims(
    p_rule truerank.award_rule, p_descending boolean, p_ranking bigint, p_revision integer
) RETURNS TABLE (member text, rank bigint, score bigint)
LANGUAGE sql STABLE AS $$
    SELECT r.member, x.rank, r.score
    FROM truerank.settlement_row AS r
    CROSS JOIN LATERAL (SELECT CASE p_rule.numbering
        WHEN 'ordinal' THEN r.ordinal WHEN 'dense' THEN r.dense
        ELSE r.competition END AS rank) AS x
    WHERE r.ranking = p_ranking AND r.revision = p_revision AND CASE p_rule.kind
        WHEN 'ranks' THEN x.rank BETWEEN p_rule.rank_from AND p_rule.rank_to
        WHEN 'percent' THEN r.competition <= ceil((
            SELECT s.population FROM truerank.settlement AS s
            WHERE s.ranking = p_ranking AND s.revision = p_revision) * p_rule.percent / 100)
        ELSE CASE WHEN p_descending THEN r.score >= p_rule.score
                  ELSE r.score <= p_rule.score END END
$$;
