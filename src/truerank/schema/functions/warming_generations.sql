-- warming_generations: the copies of groups that some worker began to fill, newest first.
CREATE OR REPLACE FUNCTION truerank.warming_generations(p_groups smallint[])
RETURNS TABLE (grp smallint, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.grp, g.id FROM truerank.generation AS g
    WHERE g.grp = ANY (p_groups) AND g.state = 'warming'
    ORDER BY g.made_at DESC
$$;
