-- in_units: a scaled score as a number in the board's unit, exactly, with all its decimals.
CREATE OR REPLACE FUNCTION truerank.in_units(p_score bigint, p_decimals smallint)
RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_decimals = 0 THEN p_score::numeric
                ELSE p_score * ('1e-' || p_decimals)::numeric END
$$;
