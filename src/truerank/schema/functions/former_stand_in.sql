-- former_stand_in: what a member is called in the digests of a season's revisions before one.
--
-- As it was called itself; else as an id that was merged into it since, of several the one that came
-- first in the newest of these revisions. Null: it had no place in any.
CREATE OR REPLACE FUNCTION truerank.former_stand_in(
    p_ranking bigint, p_revision integer, p_member text
) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT r.stand_in
    FROM unnest(truerank.names_of(p_member)) AS n (name)
    CROSS JOIN generate_series(1, p_revision - 1) AS v (revision)
    JOIN truerank.settlement_row AS r
      ON r.ranking = p_ranking AND r.revision = v.revision AND r.member = n.name
    ORDER BY n.name <> p_member, r.revision DESC, r.ordinal LIMIT 1
$$;
