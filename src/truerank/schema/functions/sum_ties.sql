-- sum_ties: up to four sums as an array of as many as the board has tie-breaks.
--
-- Raises: numeric_value_out_of_range where a sum leaves 64 bits.
CREATE OR REPLACE FUNCTION truerank.sum_ties(
    p_count integer, p_1 numeric, p_2 numeric, p_3 numeric, p_4 numeric
) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (ARRAY[p_1, p_2, p_3, p_4]::bigint[])[1:p_count]
$$;
