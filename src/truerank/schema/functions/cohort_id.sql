-- cohort_id: the number of a cohort's ranking.
--
-- A kind of its own, so it is of the same board and group; the index is drawn from
-- truerank.ranking_number.
CREATE OR REPLACE FUNCTION truerank.cohort_id(p_board_id integer, p_index bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (p_board_id::bigint << 36) | (9::bigint << 32) | p_index
$$;
