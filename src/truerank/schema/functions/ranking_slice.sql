-- ranking_slice: rows of a ranking in order, as read_page returns them.
CREATE OR REPLACE FUNCTION truerank.ranking_slice(
    p_ranking bigint, p_offset bigint, p_limit integer
) RETURNS bytea[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(p.sort_key || convert_to(p.member, 'UTF8') ORDER BY p.sort_key, p.member)
    FROM (
        SELECT s.sort_key, s.member FROM truerank.visible_standing AS s
        WHERE s.ranking = p_ranking ORDER BY s.sort_key, s.member
        OFFSET p_offset LIMIT p_limit
    ) AS p
$$;
