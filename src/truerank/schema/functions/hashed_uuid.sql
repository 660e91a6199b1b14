-- hashed_uuid: the UUID of an event id that is not itself a UUID.
--
-- Version 8: 120 bits of the text's SHA-256, with the version and variant nibbles fixed to 8.
CREATE OR REPLACE FUNCTION truerank.hashed_uuid(p_event_id text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT overlay(overlay(
        left(encode(sha256(convert_to(p_event_id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13 FOR 1) PLACING '8' FROM 17 FOR 1)::uuid
$$;
