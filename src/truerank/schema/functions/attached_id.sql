-- attached_id: the event id of a revision: the id itself, id~1, id~2 ...
--
-- A UUID has one spelling in it, so that its revisions are the same however it is written.
CREATE OR REPLACE FUNCTION truerank.attached_id(p_event_id text, p_revision integer) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN p_revision = 0 THEN p_event_id
        WHEN truerank.is_uuid(p_event_id) THEN lower(p_event_id) || '~' || p_revision
        ELSE p_event_id || '~' || p_revision END
$$;
