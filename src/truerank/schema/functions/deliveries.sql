-- deliveries: what a receiver was and is to be told of, the latest first, before one.
--
-- p_state null: waiting, parked, delivered and cancelled ones. For operators: with members' ids.
CREATE OR REPLACE FUNCTION truerank.deliveries(
    p_name text, p_state text, p_before bigint, p_limit integer
) RETURNS TABLE (id bigint, key uuid, kind text, member text, data jsonb, occurred_at timestamptz,
                 state text, attempts integer, attempted_at timestamptz, due_at timestamptz,
                 outcome text, ended_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_webhook integer := (SELECT w.id FROM truerank.webhook AS w WHERE w.name = p_name);
BEGIN
    RETURN QUERY
    SELECT d.id, d.key, d.kind, d.member, d.data, d.occurred_at, d.state, d.attempts,
           d.attempted_at, CASE WHEN d.state = 'waiting' THEN d.due_at END, d.outcome, d.ended_at
    FROM truerank.webhook_delivery AS d
    -- A range, so that its order is the index's: by id alone those of all others would be read.
    WHERE d.webhook BETWEEN v_webhook AND v_webhook AND (p_state IS NULL OR d.state = p_state)
      AND (p_before IS NULL OR d.id < p_before)
    ORDER BY d.webhook DESC, d.id DESC LIMIT p_limit;
END
$$;
