-- instant_us: the microseconds from 1970-01-01T00:00:00Z to an instant, exactly.
--
-- Stable, not immutable, as extract() is for timestamptz: otherwise the planner would not inline.
CREATE OR REPLACE FUNCTION truerank.instant_us(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$
    SELECT (extract(epoch FROM p_at) * 1000000)::bigint
$$;
