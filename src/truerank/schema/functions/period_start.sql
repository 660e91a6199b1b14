-- period_start: the first instant of a period in a zone.
--
-- p_index counts days or ISO weeks from the one that holds 1970-01-01, months and years from
-- year 0. Where clocks skip midnight the day starts when they resume; where they repeat it the
-- day starts at the first of the two, which AT TIME ZONE alone would not give.
CREATE OR REPLACE FUNCTION truerank.period_start(p_period text, p_zone text, p_index integer)
RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
DECLARE
    v_local timestamp;
    v_at timestamptz;
BEGIN
    IF p_period = 'all' THEN
        RETURN CASE WHEN p_index <= 0 THEN '-infinity'::timestamptz ELSE 'infinity' END;
    END IF;
    IF p_index < 12 AND p_period = 'month' OR p_index < 1 AND p_period = 'year' THEN
        RETURN '-infinity';  -- before the year 1, which no board takes events of
    END IF;
    v_local := CASE p_period
        WHEN 'day' THEN date '1970-01-01' + p_index
        WHEN 'week' THEN date '1969-12-29' + 7 * p_index
        WHEN 'month' THEN make_date(p_index / 12, p_index % 12 + 1, 1)
        WHEN 'year' THEN make_date(p_index, 1, 1)
    END;
    v_at := v_local AT TIME ZONE p_zone;
    RETURN coalesce(
        (SELECT min(v_at - d) FROM unnest(
            ARRAY[interval '30 minutes', interval '1 hour', interval '2 hours',
                  interval '3 hours']) AS d
         WHERE (v_at - d) AT TIME ZONE p_zone = v_local),
        v_at);
END
$$;
