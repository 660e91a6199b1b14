-- reconciled: what the last comparison by workers found, and how far the one under way is.
--
-- Numbers are null where none has ended yet. drift: everything that was wrong, unrepaired: what of
-- it still was at the end, but for what workers mend with new copies, ahead: standings that are
-- newer in the projection than here.
CREATE OR REPLACE FUNCTION truerank.reconciled()
RETURNS TABLE (ended_at timestamptz, age_ms bigint, took_ms bigint, checked bigint, drift bigint,
               unrepaired bigint, ahead bigint, checked_now bigint, drift_now bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.last_ended_at,
           (extract(epoch FROM clock_timestamp() - r.last_ended_at) * 1000)::bigint,
           r.last_took_ms, (l.found ->> 'checked')::bigint, (l.found ->> 'drift')::bigint,
           (l.found ->> 'unrepaired')::bigint - (l.found ->> 'handed_over')::bigint,
           (l.found ->> 'ahead')::bigint,
           coalesce((r.found ->> 'checked')::bigint, 0), coalesce((r.found ->> 'drift')::bigint, 0)
    FROM truerank.reconciling AS r
    -- What is zero isn't written.
    CROSS JOIN LATERAL (
        SELECT '{"checked": 0, "drift": 0, "unrepaired": 0, "handed_over": 0, "ahead": 0}'::jsonb
            || r.last_found AS found
    ) AS l
$$;
