-- generations: the copies of groups that are listed, newest first.
CREATE OR REPLACE FUNCTION truerank.generations(p_groups smallint[])
RETURNS TABLE (grp smallint, id uuid, state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.grp, g.id, g.state FROM truerank.generation AS g
    WHERE g.grp = ANY (p_groups)
    ORDER BY g.made_at DESC
$$;
