-- count_better: how many of a ranking come before a sort key, or before a prefix of one.
CREATE OR REPLACE FUNCTION truerank.count_better(p_ranking bigint, p_key bytea) RETURNS bigint
LANGUAGE sql STABLE STRICT AS $$
    SELECT count(*) FROM truerank.visible_standing AS s
    WHERE s.ranking = p_ranking AND s.sort_key < p_key
$$;
