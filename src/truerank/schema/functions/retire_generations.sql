-- retire_generations: mark copies as given up, before they are removed from Redis.
CREATE OR REPLACE FUNCTION truerank.retire_generations(p_ids uuid[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation SET state = 'retired', seen_at = clock_timestamp()
    WHERE id = ANY (p_ids) AND state <> 'retired'
$$;
