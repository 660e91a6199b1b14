-- warming_generations: the copies of a group that some worker began to fill, newest first.
CREATE OR REPLACE FUNCTION truerank.warming_generations(p_grp smallint) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id FROM truerank.generation WHERE grp = p_grp AND state = 'warming'
    ORDER BY made_at DESC
$$;
