-- note_switches: mark copies as the live ones of their groups, and those before as retired.
CREATE OR REPLACE FUNCTION truerank.note_switches(p_ids uuid[], p_groups smallint[])
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation
    SET state = CASE WHEN id = ANY (p_ids) THEN 'live' ELSE 'retired' END,
        seen_at = clock_timestamp()
    WHERE id = ANY (p_ids) OR (state = 'live' AND grp = ANY (p_groups))
$$;
