-- acknowledge_awards: note that awards were dealt with: paid out, or taken back.
--
-- p_changes: what was dealt with, as it was read. Of an award that has changed since, what it was
-- is noted, and what it is now stays open: truerank.awards tells both.
-- Repeat:  what is acknowledged stays as it was.
-- Locks:   the awards, in order of their ids.
-- Returns: how many there are of these changes, acknowledged now or before.
CREATE OR REPLACE FUNCTION truerank.acknowledge_awards(p_changes bigint[], p_actor text)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_count bigint;
BEGIN
    PERFORM FROM truerank.award AS a
    WHERE a.change = ANY (p_changes) OR a.id IN (
        SELECT p.award_id FROM truerank.award_past AS p WHERE p.change = ANY (p_changes))
    ORDER BY a.id FOR UPDATE;
    -- A later statement: a revision may have been waited for.
    UPDATE truerank.award_past AS p SET acknowledged_at = v_now, acknowledged_by = p_actor
    WHERE p.change = ANY (p_changes) AND p.acknowledged_at IS NULL;
    UPDATE truerank.award AS a SET acknowledged_at = v_now, acknowledged_by = p_actor
    WHERE a.change = ANY (p_changes) AND a.acknowledged_at IS NULL;
    WITH dealt AS MATERIALIZED (
        SELECT a.id, a.change, a.state FROM truerank.award AS a WHERE a.change = ANY (p_changes)
        UNION ALL
        SELECT p.award_id, p.change, p.state FROM truerank.award_past AS p
        WHERE p.change = ANY (p_changes)
    ), latest AS (
        SELECT DISTINCT ON (d.id) d.* FROM dealt AS d ORDER BY d.id, d.change DESC
    ), noted AS (
        UPDATE truerank.award AS a SET
            acknowledged_change = l.change, acknowledged_state = l.state
        FROM latest AS l
        WHERE a.id = l.id AND coalesce(a.acknowledged_change, 0) < l.change
    )
    SELECT count(*) INTO v_count FROM dealt;
    RETURN v_count;
END
$$;
