-- note_switches: mark copies as the live ones of their groups, and those before as retired.
--
-- Where the switch was asked for with a way back, the one before is marked as former. The request
-- is done with it.
-- Returns: the former copies of these groups.
CREATE OR REPLACE FUNCTION truerank.note_switches(p_ids uuid[], p_groups smallint[])
RETURNS SETOF uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH asked AS MATERIALIZED (
        SELECT r.grp, r.keep_ms FROM truerank.rebuild AS r
        WHERE r.generation = ANY (p_ids) AND r.ended_at IS NULL
    )
    UPDATE truerank.generation AS g
    SET state = CASE WHEN g.id = ANY (p_ids) THEN 'live'
                     WHEN g.state = 'live' AND a.keep_ms > 0 THEN 'former'
                     ELSE 'retired' END,
        kept_until = CASE WHEN g.id <> ALL (p_ids) AND g.state = 'live' AND a.keep_ms > 0
                          THEN clock_timestamp() + make_interval(secs => a.keep_ms / 1000.0) END,
        seen_at = clock_timestamp()
    FROM unnest(p_groups) AS n (grp) LEFT JOIN asked AS a ON a.grp = n.grp
    WHERE g.grp = n.grp
      AND (g.id = ANY (p_ids) OR g.state = 'live' OR (g.state = 'former' AND a.grp IS NOT NULL));
    UPDATE truerank.rebuild SET ended_at = clock_timestamp(), outcome = 'switched'
    WHERE generation = ANY (p_ids) AND ended_at IS NULL;
    SELECT g.id FROM truerank.generation AS g
    WHERE g.grp = ANY (p_groups) AND g.state = 'former'
$$;
