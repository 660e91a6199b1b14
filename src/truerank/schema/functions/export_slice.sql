-- export_slice: the rows of a ranking after a sort key and member, in order.
--
-- Called again and again in one REPEATABLE READ transaction, so that all slices are of one
-- snapshot. What a reader may not see isn't in it.
-- p_divided: the ranking is a season's that is divided; cohort is then the number of the member's.
-- Of a cohort the versions are those of its season: whoever takes both in elsewhere, takes each
-- standing once.
CREATE OR REPLACE FUNCTION truerank.export_slice(
    p_ranking bigint, p_key bytea, p_member text, p_rows_max integer,
    p_divided boolean DEFAULT false
) RETURNS TABLE (member text, sort_key bytea, ties bigint[], version bigint, cohort integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.member, s.sort_key, s.ties,
           CASE WHEN (p_ranking >> 32) & 15 = 9 THEN (
               SELECT o.version FROM truerank.standing AS o
               WHERE o.ranking = truerank.season_divided(p_ranking) AND o.member = s.member)
           ELSE s.version END,
           CASE WHEN p_divided THEN (
               SELECT c.number FROM truerank.cohort_member AS m
               JOIN truerank.cohort AS c ON c.ranking = m.cohort
               WHERE m.season = p_ranking AND m.member = s.member) END
    FROM truerank.visible_standing AS s
    WHERE s.ranking = p_ranking AND (s.sort_key, s.member) > (p_key, p_member COLLATE "C")
    ORDER BY s.sort_key, s.member LIMIT p_rows_max
$$;
