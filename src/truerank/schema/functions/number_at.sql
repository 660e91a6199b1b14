-- number_at: the signed number that eight bytes of a sort key hold, from a byte counted from 1.
CREATE OR REPLACE FUNCTION truerank.number_at(p_key bytea, p_from integer) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('x' || encode(substr(p_key, p_from, 8), 'hex'))::bit(64)::bigint
           # (-9223372036854775808)
$$;
