-- settlement_excluded_members: who had a score and no place in a settlement, and why.
--
-- For operators. The score is in the board's unit, null of who was deleted before.
CREATE OR REPLACE FUNCTION truerank.settlement_excluded_members(
    p_ranking bigint, p_revision integer, p_after text, p_limit integer
) RETURNS TABLE (member text, why text, score numeric)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.member, x.why, truerank.in_units(x.score, b.decimals)
    FROM truerank.settlement_excluded AS x JOIN truerank.board AS b ON b.id = x.ranking >> 36
    WHERE x.ranking = p_ranking AND x.revision = p_revision AND x.member > p_after COLLATE "C"
    ORDER BY x.member LIMIT p_limit
$$;
