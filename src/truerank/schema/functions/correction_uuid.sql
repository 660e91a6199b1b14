-- correction_uuid: the UUID under which an amendment is stored that a correction id names.
--
-- Ids of corrections and of events are two sets: no event can take the id of an amendment that is
-- still to come, and no amendment that of an event. No text has the byte that goes first here.
CREATE OR REPLACE FUNCTION truerank.correction_uuid(p_correction_id text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT overlay(overlay(
        left(encode(sha256('\x00'::bytea || convert_to(
            CASE WHEN truerank.is_uuid(p_correction_id) THEN lower(p_correction_id)
                 ELSE p_correction_id END, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13 FOR 1) PLACING '8' FROM 17 FOR 1)::uuid
$$;
