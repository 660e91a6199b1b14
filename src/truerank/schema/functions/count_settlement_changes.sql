-- count_settlement_changes: how many places of a revision differ from the one before.
--
-- Whoever was merged into another id in between is the same, under the same stand-in.
CREATE OR REPLACE FUNCTION truerank.count_settlement_changes(p_ranking bigint, p_revision integer)
RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT count(*)
    FROM (SELECT r.* FROM truerank.settlement_row AS r
          WHERE r.ranking = p_ranking AND r.revision = p_revision - 1) AS o
    FULL JOIN (SELECT r.* FROM truerank.settlement_row AS r
               WHERE r.ranking = p_ranking AND r.revision = p_revision) AS n
      ON n.stand_in = o.stand_in
    WHERE (o.ordinal, o.competition, o.dense, o.sort_key)
          IS DISTINCT FROM (n.ordinal, n.competition, n.dense, n.sort_key)
$$;
