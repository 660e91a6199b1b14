-- event_uuid: the UUID under which an event id is stored; null for none.
CREATE OR REPLACE FUNCTION truerank.event_uuid(p_event_id text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN truerank.is_uuid(p_event_id) THEN p_event_id::uuid
                ELSE truerank.hashed_uuid(p_event_id) END
$$;
