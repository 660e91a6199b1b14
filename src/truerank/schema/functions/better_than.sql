-- better_than: how many of a ranking are better than one of its rows, whose place is known.
--
-- p_row is sort key and member in UTF-8, as read_page returns it; null: null. Equals agree in the
-- first p_row_bytes. p_withheld, p_withheld_keys: as in count_before. Cost: linear in the equals before it.
CREATE OR REPLACE FUNCTION truerank.better_than(
    p_ranking bigint, p_place bigint, p_row bytea, p_row_bytes integer, p_withheld text[],
    p_withheld_keys bytea[]
) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_key_bytes CONSTANT integer := p_row_bytes + 16;  -- the instant and the position follow
BEGIN
    IF p_place = 0 OR p_row IS NULL THEN
        RETURN p_place;
    END IF;
    RETURN p_place - (truerank.count_before(
        p_ranking, ARRAY[substr(p_row, 1, v_key_bytes)],
        ARRAY[convert_from(substr(p_row, v_key_bytes + 1), 'UTF8')], p_withheld, p_withheld_keys,
        substr(p_row, 1, p_row_bytes), p_ordered => true))[1];
END
$$;
