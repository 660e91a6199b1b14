-- note_switch: mark a copy as the live one of its group, and the one before as retired.
CREATE OR REPLACE FUNCTION truerank.note_switch(p_id uuid, p_grp smallint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation
    SET state = CASE WHEN id = p_id THEN 'live' ELSE 'retired' END, seen_at = clock_timestamp()
    WHERE grp = p_grp AND (id = p_id OR state = 'live')
$$;
