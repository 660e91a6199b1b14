-- count_better: how many of a ranking come before a sort key and member.
--
-- With an empty member: before all that begin with these bytes.
CREATE OR REPLACE FUNCTION truerank.count_better(
    p_ranking bigint, p_key bytea, p_member text DEFAULT ''
) RETURNS bigint
LANGUAGE sql STABLE STRICT AS $$
    SELECT count(*) FROM truerank.visible_standing AS s
    WHERE s.ranking = p_ranking AND (s.sort_key, s.member) < (p_key, p_member COLLATE "C")
$$;
