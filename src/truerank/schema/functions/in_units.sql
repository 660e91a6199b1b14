-- in_units: a scaled score as a number in the board's unit, exactly, with all its decimals.
--
-- Stable, not immutable, as || is for a number and a text: otherwise it would not be inlined.
CREATE OR REPLACE FUNCTION truerank.in_units(p_score bigint, p_decimals smallint)
RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_decimals = 0 THEN p_score::numeric
                ELSE p_score * ('1e-' || p_decimals)::numeric END
$$;
