-- instant_text: an instant in UTC with microseconds, as in all answers; null where there is no end.
CREATE OR REPLACE FUNCTION truerank.instant_text(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN isfinite(p_at) THEN
        to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END
$$;
