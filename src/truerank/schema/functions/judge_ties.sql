-- judge_ties: why a row of tie-breaks is refused, or null.
CREATE OR REPLACE FUNCTION truerank.judge_ties(p_board truerank.board, p_ties bigint[])
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN bool_or(t.tie IS NULL) THEN 'tie_invalid'
        WHEN bool_or(t.tie NOT BETWEEN t.tie_min AND t.tie_max) THEN 'tie_out_of_range'
    END
    FROM unnest(p_ties, (p_board).tie_min, (p_board).tie_max) AS t (tie, tie_min, tie_max)
$$;
