-- open_rebuilds: what was asked for of these groups and isn't done yet.
CREATE OR REPLACE FUNCTION truerank.open_rebuilds(p_groups smallint[])
RETURNS TABLE (id bigint, grp smallint, kind text, cause text, throttled boolean, tries integer,
               generation uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, r.grp, r.kind, r.cause, r.throttled, r.tries, r.generation
    FROM truerank.rebuild AS r
    WHERE r.grp = ANY (p_groups) AND r.ended_at IS NULL ORDER BY r.id
$$;
