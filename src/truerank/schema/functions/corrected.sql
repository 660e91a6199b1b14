-- corrected: the rankings and members whose standings follow from corrections just stored.
CREATE OR REPLACE FUNCTION truerank.corrected(
    p_runs truerank.season_run[], p_correction truerank.correction[]
) RETURNS TABLE (ranking bigint, member text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT r.ranking, truerank.owner_of(c.member) COLLATE "C"
    FROM unnest(p_correction) AS c
    CROSS JOIN LATERAL truerank.seasons_at(p_runs, c.at) AS r
    WHERE c.outcome = 'applied'
    ORDER BY 1, 2
$$;
