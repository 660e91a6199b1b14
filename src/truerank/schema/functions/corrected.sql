-- corrected: the rankings and members whose standings follow from corrections just stored.
CREATE OR REPLACE FUNCTION truerank.corrected(
    p_seasons truerank.season[], p_correction truerank.correction[]
) RETURNS TABLE (ranking bigint, member text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT r.ranking, c.member
    FROM unnest(p_correction) AS c
    JOIN unnest(p_seasons) AS r ON c.at >= r.starts_at AND c.at < r.ends_at
    WHERE c.outcome = 'applied'
    ORDER BY r.ranking, c.member
$$;
