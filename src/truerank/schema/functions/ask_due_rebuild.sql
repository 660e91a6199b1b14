-- ask_due_rebuild: ask for a new copy of the group whose copy is the oldest, where that is due.
--
-- Not while a request of any of these groups is open, so that one is carried out after the other;
-- and after one that failed not before as long again has passed.
CREATE OR REPLACE FUNCTION truerank.ask_due_rebuild(
    p_groups smallint[], p_every_s integer, p_keep_ms integer
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_before timestamptz := clock_timestamp() - make_interval(secs => p_every_s);
    v_group smallint;
BEGIN
    IF EXISTS (SELECT FROM truerank.rebuild AS r
               WHERE r.grp = ANY (p_groups) AND r.ended_at IS NULL) THEN
        RETURN;
    END IF;
    SELECT g.grp INTO v_group FROM truerank.generation AS g
    WHERE g.grp = ANY (p_groups) AND g.state = 'live' AND g.made_at < v_before
      AND NOT EXISTS (SELECT FROM truerank.rebuild AS r
                      WHERE r.grp = g.grp AND r.asked_at >= v_before)
    ORDER BY g.made_at LIMIT 1;
    IF FOUND THEN
        PERFORM truerank.ask_rebuilds(
            ARRAY[v_group], 'rebuild', 'schedule', true, p_keep_ms, 'schedule');
    END IF;
END
$$;
