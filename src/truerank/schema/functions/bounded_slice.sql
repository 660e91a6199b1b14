-- bounded_slice: the slice of read_page where it has bounds or is beside a row, and the counts.
--
-- Parameters and columns are those of read_page; see there. p_withheld: of whom none is counted;
-- p_withheld_keys: their sort keys.
CREATE OR REPLACE FUNCTION truerank.bounded_slice(
    p_ranking bigint, p_offset bigint, p_limit integer, p_start text, p_beside_key bytea,
    p_beside_member text, p_low bytea, p_high bytea, p_marks bytea[], p_total bigint,
    p_withheld text[], p_withheld_keys bytea[]
) RETURNS TABLE (slice bytea[], first bigint, low bigint, high bigint, counts bigint[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_from_key bytea := coalesce(p_low, '');
    v_from_member text := '';
    v_to_key bytea := coalesce(p_high, decode(repeat('ff', 64), 'hex'));  -- after every sort key
    v_to_member text := '';
    v_counts bigint[];
BEGIN
    IF p_start = 'after' AND (p_beside_key, p_beside_member) >= (v_from_key, v_from_member) THEN
        v_from_key := p_beside_key;
        v_from_member := p_beside_member || chr(1);  -- not the row itself
    ELSIF p_start = 'before' AND (p_beside_key, p_beside_member) < (v_to_key, v_to_member) THEN
        v_to_key := p_beside_key;
        v_to_member := p_beside_member;
    END IF;
    IF p_limit > 0 THEN
        slice := truerank.ranking_slice(
            p_ranking, v_from_key, v_from_member, v_to_key, v_to_member,
            CASE WHEN p_start = 'at' THEN p_offset ELSE 0 END, p_limit, p_withheld,
            p_start = 'before');
    END IF;
    -- In one walk: what is asked for beside each other costs once.
    v_counts := truerank.count_before(
        p_ranking,
        ARRAY[p_low, p_high, CASE p_start WHEN 'after' THEN v_from_key
                                          WHEN 'before' THEN v_to_key END] || p_marks,
        ARRAY['', '', CASE p_start WHEN 'after' THEN v_from_member ELSE v_to_member END]
        || array_fill(''::text, ARRAY[cardinality(p_marks)]),
        p_withheld, p_withheld_keys);
    low := coalesce(v_counts[1], 0);
    high := coalesce(v_counts[2], p_total);
    first := CASE p_start
        WHEN 'at' THEN low + p_offset
        WHEN 'after' THEN greatest(low, v_counts[3])
        ELSE greatest(low, v_counts[3] - coalesce(cardinality(slice), 0)) END;
    counts := v_counts[4:];
    RETURN NEXT;
END
$$;
