-- note_generations: list new copies of groups, before they exist in Redis.
CREATE OR REPLACE FUNCTION truerank.note_generations(
    p_ids uuid[], p_groups smallint[], p_epoch uuid, p_tick bigint, p_snapshot pg_snapshot
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
    SELECT g.id, g.grp, p_epoch, 'warming', p_tick, p_snapshot
    FROM unnest(p_ids, p_groups) AS g (id, grp)
$$;
