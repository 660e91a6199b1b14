-- equal_bytes: in how many bytes of a sort key (score and tie-breaks) equals agree, where the
-- board of a ranking asks to be counted densely; else 0.
CREATE OR REPLACE FUNCTION truerank.equal_bytes(p_ranking bigint) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT 8 * (1 + cardinality(b.tie_names)) FROM truerank.board AS b
                     WHERE b.id = p_ranking >> 36 AND b.dense), 0)
$$;
