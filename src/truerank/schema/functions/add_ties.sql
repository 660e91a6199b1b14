-- add_ties: two rows of tie-breaks added column by column.
--
-- Raises: numeric_value_out_of_range where a sum leaves 64 bits.
CREATE OR REPLACE FUNCTION truerank.add_ties(p_left bigint[], p_right bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_agg(t.l + t.r ORDER BY t.ord)
    FROM unnest(p_left, p_right) WITH ORDINALITY AS t (l, r, ord)
$$;
