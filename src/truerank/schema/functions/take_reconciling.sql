-- take_reconciling: be the one worker that compares, for a while, or find that another one is.
--
-- A pass begins no earlier than p_rest_ms after the end of the last one.
-- Returns: one row: where to go on, and what the pass under way has found; none where another worker
--          holds it, or none is due.
CREATE OR REPLACE FUNCTION truerank.take_reconciling(
    p_holder uuid, p_hold_ms integer, p_rest_ms integer
)
RETURNS TABLE (grp integer, ranking bigint, sort_key bytea, member text, found jsonb)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.reconciling AS r SET
        holder = p_holder,
        held_until = clock_timestamp() + p_hold_ms * interval '1 millisecond',
        began_at = CASE WHEN r.grp IS NULL THEN clock_timestamp() ELSE r.began_at END,
        found = CASE WHEN r.grp IS NULL THEN '{}' ELSE r.found END
    WHERE (r.holder = p_holder OR r.held_until < clock_timestamp())
      AND (r.grp IS NOT NULL OR r.last_ended_at IS NULL
           OR r.last_ended_at < clock_timestamp() - p_rest_ms * interval '1 millisecond')
    RETURNING coalesce(r.grp, 0), r.ranking, r.sort_key, r.member, r.found
$$;
