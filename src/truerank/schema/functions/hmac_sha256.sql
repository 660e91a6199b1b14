-- hmac_sha256: the keyed hash of RFC 2104 with SHA-256, for a key of at most 64 bytes.
CREATE OR REPLACE FUNCTION truerank.hmac_sha256(p_key bytea, p_text bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_inner bytea := p_key || substr(decode(repeat('00', 64), 'hex'), 1, 64 - length(p_key));
    v_outer bytea := v_inner;
BEGIN
    FOR v_at IN 0 .. 63 LOOP
        v_outer := set_byte(v_outer, v_at, get_byte(v_inner, v_at) # 92);
        v_inner := set_byte(v_inner, v_at, get_byte(v_inner, v_at) # 54);
    END LOOP;
    RETURN sha256(v_outer || sha256(v_inner || p_text));
END
$$;
