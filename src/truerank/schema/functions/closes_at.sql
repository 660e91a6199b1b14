-- closes_at: when a season may be closed: at the end of its board's grace. Infinity: by force only.
CREATE OR REPLACE FUNCTION truerank.closes_at(p_board truerank.board, p_ends_at timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_ends_at, 'infinity') + coalesce((p_board).late_grace, interval '0')
$$;
