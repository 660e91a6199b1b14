-- total_bounds: within which bounds a board takes a total that was p_before; null: there was none.
--
-- The board's range. A total that is outside, because the range was changed since, may come nearer
-- and need not arrive at once: otherwise nothing could be taken back from those it is about.
CREATE OR REPLACE FUNCTION truerank.total_bounds(p_board truerank.board, p_before numeric)
RETURNS TABLE ("least" numeric, most numeric)
LANGUAGE sql IMMUTABLE AS $$
    SELECT least((p_board).total_min, p_before), greatest((p_board).total_max, p_before)
$$;
