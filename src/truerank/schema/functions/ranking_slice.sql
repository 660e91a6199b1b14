-- ranking_slice: rows of a ranking in order, as read_page returns them.
--
-- Rows from the first pair of sort key and member on and before the second; of these, passing over
-- p_offset, the first p_limit, or the last where p_backward. An empty member comes before all.
-- None that p_withheld names are among them; null: nobody is withheld.
CREATE OR REPLACE FUNCTION truerank.ranking_slice(
    p_ranking bigint, p_from_key bytea, p_from_member text, p_to_key bytea, p_to_member text,
    p_offset bigint, p_limit integer, p_withheld text[], p_backward boolean DEFAULT false
) RETURNS bytea[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_backward THEN
        RETURN (
            SELECT array_agg(p.sort_key || convert_to(p.member, 'UTF8')
                             ORDER BY p.sort_key, p.member)
            FROM (
                SELECT s.sort_key, s.member FROM truerank.standing AS s
                WHERE s.ranking = p_ranking
                  AND (s.sort_key, s.member) >= (p_from_key, p_from_member COLLATE "C")
                  AND (s.sort_key, s.member) < (p_to_key, p_to_member COLLATE "C")
                  AND (p_withheld IS NULL
                       OR s.member NOT IN (SELECT w FROM unnest(p_withheld) AS w))
                ORDER BY s.sort_key DESC, s.member DESC
                OFFSET p_offset LIMIT p_limit
            ) AS p);
    END IF;
    RETURN (
        SELECT array_agg(p.sort_key || convert_to(p.member, 'UTF8') ORDER BY p.sort_key, p.member)
        FROM (
            SELECT s.sort_key, s.member FROM truerank.standing AS s
            WHERE s.ranking = p_ranking
              AND (s.sort_key, s.member) >= (p_from_key, p_from_member COLLATE "C")
              AND (s.sort_key, s.member) < (p_to_key, p_to_member COLLATE "C")
              AND (p_withheld IS NULL OR s.member NOT IN (SELECT w FROM unnest(p_withheld) AS w))
            ORDER BY s.sort_key, s.member
            OFFSET p_offset LIMIT p_limit
        ) AS p);
END
$$;
