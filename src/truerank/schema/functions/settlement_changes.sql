-- settlement_changes: in what a revision of a settlement differs from an earlier one, a slice of it.
--
-- One row per member in another place, or with another score or time; nulls where it came or went.
-- First those who have a place now, in its order; then those who have none any more, in the order
-- of theirs. Whoever was merged into another id in between is the same. Places are ordinal and
-- competition ranks. Of who was deleted since, the stand-in.
-- p_after: a pos, 0 at first: of a place now it is its number, of one before it is its number and
-- the population now. p_places_max: positions to look at, so that a slice takes no longer where
-- little differs. Rows of settlements never change, so slices of one comparison fit together.
CREATE OR REPLACE FUNCTION truerank.settlement_changes(
    p_ranking bigint, p_since integer, p_revision integer, p_after bigint, p_places_max integer,
    p_limit integer
) RETURNS TABLE (pos bigint, member text, ordinal_before bigint, ordinal bigint,
                 rank_before bigint, rank bigint, score_before numeric, score numeric)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_population bigint := (
        SELECT s.population FROM truerank.settlement AS s
        WHERE s.ranking = p_ranking AND s.revision = p_revision);
    v_season bigint := truerank.season_divided(p_ranking);
    v_decimals smallint := (
        SELECT b.decimals FROM truerank.board AS b WHERE b.id = p_ranking >> 36);
BEGIN
    RETURN QUERY
    SELECT d.pos, d.member, d.ordinal_before, d.ordinal, d.rank_before, d.rank,
           truerank.in_units(d.score_before, v_decimals), truerank.in_units(d.score, v_decimals)
    FROM (
        (SELECT n.ordinal AS pos,
                CASE WHEN n.left_at IS NULL THEN n.member ELSE encode(n.stand_in, 'hex') END
                    AS member,
                o.ordinal AS ordinal_before, n.ordinal, o.competition AS rank_before,
                n.competition AS rank, o.score AS score_before, n.score
         FROM truerank.settlement_row AS n
         LEFT JOIN LATERAL truerank.place_in(n, p_since, v_season) AS o ON true
         WHERE n.ranking = p_ranking AND n.revision = p_revision
           AND n.ordinal > p_after AND n.ordinal <= p_after + p_places_max
           AND (o.ordinal, o.competition, o.dense, o.sort_key)
               IS DISTINCT FROM (n.ordinal, n.competition, n.dense, n.sort_key)
         ORDER BY n.ordinal LIMIT p_limit)
        UNION ALL
        (SELECT v_population + o.ordinal,
                CASE WHEN o.left_at IS NULL THEN o.member ELSE encode(o.stand_in, 'hex') END,
                o.ordinal, NULL, o.competition, NULL, o.score, NULL
         FROM truerank.settlement_row AS o
         WHERE o.ranking = p_ranking AND o.revision = p_since
           AND o.ordinal > p_after - v_population
           AND o.ordinal <= p_after - v_population + p_places_max
           AND NOT EXISTS (SELECT FROM truerank.place_in(o, p_revision, v_season))
         ORDER BY o.ordinal LIMIT p_limit)
    ) AS d
    ORDER BY d.pos LIMIT p_limit;
END
$$;
