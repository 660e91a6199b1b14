-- export_settled: the places of a settlement after an ordinal, in order, with everybody's own id.
--
-- For who pays out: also those who are hidden or banned today. Only who was deleted since is called
-- by the stand-in.
CREATE OR REPLACE FUNCTION truerank.export_settled(
    p_ranking bigint, p_revision integer, p_after bigint, p_rows_max integer
) RETURNS TABLE (ordinal bigint, competition bigint, dense bigint, member text, sort_key bytea,
                 ties bigint[], stand_in bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.ordinal, r.competition, r.dense,
           CASE WHEN r.left_at IS NULL THEN r.member ELSE encode(r.stand_in, 'hex') END, r.sort_key, r.ties,
           r.stand_in
    FROM truerank.settlement_row AS r
    WHERE r.ranking = p_ranking AND r.revision = p_revision AND r.ordinal > p_after
    ORDER BY r.ordinal LIMIT p_rows_max
$$;
