-- ranking_id: the number of a ranking, computed, so that no command inserts a row for it.
--
-- 27 bits board, 4 bits kind of period, 32 bits index of the period: no two can be equal.
-- For custom seasons the index is drawn from truerank.ranking_number.
CREATE OR REPLACE FUNCTION truerank.ranking_id(p_board_id integer, p_period text, p_index bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (p_board_id::bigint << 36)
        | (array_position(ARRAY['all', 'day', 'week', 'month', 'year', 'custom'], p_period)::bigint
           << 32)
        | (p_index + 2147483648)
$$;
