-- settlement_changes: in what a revision of a settlement differs from the one before.
--
-- One row per member in another place, or with another score or time, than before; nulls where it
-- came or went. Places are ordinal and competition ranks. Of who was deleted since, the stand-in.
CREATE OR REPLACE FUNCTION truerank.settlement_changes(p_ranking bigint, p_revision integer)
RETURNS TABLE (member text, ordinal_before bigint, ordinal bigint, rank_before bigint, rank bigint,
               score_before bigint, score bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN coalesce(n.left_at, o.left_at) IS NULL THEN coalesce(n.member, o.member)
                ELSE encode(coalesce(n.stand_in, o.stand_in), 'hex') END,
           o.ordinal, n.ordinal, o.competition, n.competition, o.score, n.score
    FROM (SELECT r.* FROM truerank.settlement_row AS r
          WHERE r.ranking = p_ranking AND r.revision = p_revision - 1) AS o
    FULL JOIN (SELECT r.* FROM truerank.settlement_row AS r
               WHERE r.ranking = p_ranking AND r.revision = p_revision) AS n
      ON n.member = o.member
    WHERE p_revision > 1 AND (o.ordinal, o.competition, o.dense, o.sort_key)
          IS DISTINCT FROM (n.ordinal, n.competition, n.dense, n.sort_key)
    ORDER BY coalesce(n.ordinal, o.ordinal), o.ordinal
$$;
