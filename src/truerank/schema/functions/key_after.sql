-- key_after: the least bytes that come after everything that begins with these.
--
-- Null where nothing does: all of them are 255.
CREATE OR REPLACE FUNCTION truerank.key_after(p_bytes bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    FOR v_at IN REVERSE length(p_bytes) - 1 .. 0 LOOP
        IF get_byte(p_bytes, v_at) < 255 THEN
            RETURN substr(set_byte(p_bytes, v_at, get_byte(p_bytes, v_at) + 1), 1, v_at + 1);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
