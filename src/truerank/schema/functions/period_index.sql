-- period_index: the period of a kind that an instant falls into; see period_start.
--
-- The local date alone would be wrong where clocks go back over midnight: there one date comes
-- twice, and a season must stay one range of instants.
CREATE OR REPLACE FUNCTION truerank.period_index(p_period text, p_zone text, p_at timestamptz)
RETURNS integer
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
DECLARE
    v_local timestamp := p_at AT TIME ZONE p_zone;
    v_index integer;
BEGIN
    v_index := CASE p_period
        WHEN 'all' THEN 0
        WHEN 'day' THEN v_local::date - date '1970-01-01'
        WHEN 'week' THEN floor((v_local::date - date '1969-12-29') / 7.0)
        WHEN 'month' THEN extract(year FROM v_local) * 12 + extract(month FROM v_local) - 1
        WHEN 'year' THEN extract(year FROM v_local)
    END;
    IF p_at < truerank.period_start(p_period, p_zone, v_index) THEN
        RETURN v_index - 1;
    ELSIF p_at >= truerank.period_start(p_period, p_zone, v_index + 1) THEN
        RETURN v_index + 1;
    END IF;
    RETURN v_index;
END
$$;
