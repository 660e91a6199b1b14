-- formers_over: copies that followed along for as long as they were to.
CREATE OR REPLACE FUNCTION truerank.formers_over(p_groups smallint[]) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.id FROM truerank.generation AS g
    WHERE g.grp = ANY (p_groups) AND g.state = 'former'
      AND (g.kept_until IS NULL OR g.kept_until <= clock_timestamp())
$$;
