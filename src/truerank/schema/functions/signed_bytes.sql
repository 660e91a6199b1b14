-- signed_bytes: eight bytes whose order is that of the signed numbers.
--
-- Big-endian with the sign bit flipped, so that memcmp puts -1 before 0.
CREATE OR REPLACE FUNCTION truerank.signed_bytes(p_number bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT int8send(p_number # (-9223372036854775808))
$$;
