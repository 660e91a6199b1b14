-- place_in: the place that whoever has one in a settlement has in another revision of it.
--
-- It has the same stand-in there. Its id is the same, or one of the two was merged into the other
-- in between. p_season: the season's ranking, or of a cohort's that of its season.
-- Inlined where it stands in a FROM.
CREATE OR REPLACE FUNCTION truerank.place_in(
    p_place truerank.settlement_row, p_revision integer, p_season bigint
) RETURNS SETOF truerank.settlement_row
LANGUAGE sql STABLE AS $$
    SELECT r.* FROM truerank.settlement_row AS r
    WHERE r.ranking = (p_place).ranking AND r.revision = p_revision
      AND r.stand_in = (p_place).stand_in
      AND r.member = ANY (ARRAY(
          SELECT (p_place).member
          UNION ALL
          SELECT n.name FROM truerank.settlement_name AS n
          WHERE n.ranking = p_season AND n.revision = greatest((p_place).revision, p_revision)
            AND n.member = (p_place).member
          UNION ALL
          SELECT n.member FROM truerank.settlement_name AS n
          WHERE n.ranking = p_season AND n.revision = greatest((p_place).revision, p_revision)
            AND n.name = (p_place).member))
$$;
