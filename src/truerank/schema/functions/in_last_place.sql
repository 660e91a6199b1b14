-- in_last_place: a number in the board's unit, in units of its last decimal place.
--
-- What is far beyond any range stays as it is: scaled, it could overflow and end the transaction.
CREATE OR REPLACE FUNCTION truerank.in_last_place(p_value numeric, p_decimals smallint)
RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_decimals = 0 OR abs(p_value) > 1e40 THEN p_value
                ELSE p_value * 10::numeric ^ p_decimals END
$$;
