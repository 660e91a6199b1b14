-- count_ahead: how many of a ranking are better than those whose sort key begins with some bytes.
--
-- p_dense: how many different bytes of that length theirs begin with. Either is linear in them.
CREATE OR REPLACE FUNCTION truerank.count_ahead(
    p_ranking bigint, p_equals bytea, p_dense boolean
) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    IF p_dense THEN
        RETURN (SELECT count(DISTINCT substr(s.sort_key, 1, length(p_equals)))
                FROM truerank.visible_standing AS s
                WHERE s.ranking = p_ranking AND s.sort_key < p_equals);
    END IF;
    RETURN truerank.count_better(p_ranking, p_equals);
END
$$;
