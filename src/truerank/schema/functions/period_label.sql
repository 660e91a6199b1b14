-- period_label: the name of a season: all, 2026-08-30, 2026-W35, 2026-08 or 2026.
--
-- ISO 8601 weeks belong to the year of their Thursday: 2026-12-28 is in 2026-W53.
CREATE OR REPLACE FUNCTION truerank.period_label(p_period text, p_index integer) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE p_period
        WHEN 'all' THEN 'all'
        WHEN 'day' THEN to_char(date '1970-01-01' + p_index, 'YYYY-MM-DD')
        WHEN 'week' THEN to_char(date '1969-12-29' + 7 * p_index, 'IYYY"-W"IW')
        WHEN 'month' THEN to_char(p_index / 12, 'FM0000') || '-' || to_char(p_index % 12 + 1, 'FM00')
        WHEN 'year' THEN to_char(p_index, 'FM0000')
    END
$$;
