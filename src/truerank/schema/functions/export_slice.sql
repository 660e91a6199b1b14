-- export_slice: the rows of a ranking after a sort key and member, in order.
--
-- Called again and again in one REPEATABLE READ transaction, so that all slices are of one
-- snapshot. What a reader may not see isn't in it.
CREATE OR REPLACE FUNCTION truerank.export_slice(
    p_ranking bigint, p_key bytea, p_member text, p_rows_max integer
) RETURNS TABLE (member text, sort_key bytea, ties bigint[], version bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.member, s.sort_key, s.ties, s.version FROM truerank.visible_standing AS s
    WHERE s.ranking = p_ranking AND (s.sort_key, s.member) > (p_key, p_member COLLATE "C")
    ORDER BY s.sort_key, s.member LIMIT p_rows_max
$$;
