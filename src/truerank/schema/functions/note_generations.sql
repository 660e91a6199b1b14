-- note_generations: list new copies of groups, before they exist in Redis.
--
-- p_cause: why: asked, schedule, lost, damaged, pruned, dense or parked. The first two answer the
-- open requests of their groups.
CREATE OR REPLACE FUNCTION truerank.note_generations(
    p_ids uuid[], p_groups smallint[], p_epoch uuid, p_tick bigint, p_snapshot pg_snapshot,
    p_cause text, p_rows_about bigint[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO truerank.generation
        (id, grp, epoch, state, cursor_tick, cursor_snapshot, cause, rows_about)
    SELECT g.id, g.grp, p_epoch, 'warming', p_tick, p_snapshot, p_cause, coalesce(g.rows, 0)
    FROM unnest(p_ids, p_groups, p_rows_about) AS g (id, grp, rows);
    UPDATE truerank.rebuild AS r SET generation = g.id, tries = r.tries + 1
    FROM unnest(p_ids, p_groups) AS g (id, grp)
    WHERE r.grp = g.grp AND r.kind = 'rebuild' AND r.cause = p_cause AND r.ended_at IS NULL
$$;
