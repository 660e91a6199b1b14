-- export_settled: the places of a settlement after an ordinal, in order, with everybody's own id.
--
-- For who pays out: also those who are hidden or banned today. Only who was deleted since is called
-- by the stand-in.
-- p_divided: the ranking is a season's that is divided; cohort is then the number of that in which
-- the member has a place by the same revision.
CREATE OR REPLACE FUNCTION truerank.export_settled(
    p_ranking bigint, p_revision integer, p_after bigint, p_rows_max integer,
    p_divided boolean DEFAULT false
) RETURNS TABLE (ordinal bigint, competition bigint, dense bigint, member text, sort_key bytea,
                 ties bigint[], stand_in bytea, cohort integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.ordinal, r.competition, r.dense,
           CASE WHEN r.left_at IS NULL THEN r.member ELSE encode(r.stand_in, 'hex') END, r.sort_key, r.ties,
           r.stand_in,
           CASE WHEN p_divided THEN (
               SELECT c.number FROM truerank.cohort_member AS m
               JOIN truerank.cohort AS c ON c.ranking = m.cohort
               JOIN truerank.settlement_row AS x
                 ON x.ranking = m.cohort AND x.revision = p_revision AND x.member = m.member
               WHERE m.season = p_ranking AND m.member = r.member) END
    FROM truerank.settlement_row AS r
    WHERE r.ranking = p_ranking AND r.revision = p_revision AND r.ordinal > p_after
    ORDER BY r.ordinal LIMIT p_rows_max
$$;
