-- league_tiers: who is in another tier than the first, in order of ids after one.
--
-- season: by whose settlement. Members who aren't in it are in the first tier.
CREATE OR REPLACE FUNCTION truerank.league_tiers(
    p_board_id integer, p_period text, p_after text, p_limit integer
) RETURNS TABLE (member text, tier integer, tier_name text, season text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    SELECT v.member, least(v.tier_to, cardinality(l.tiers) - 1),
           l.tiers[least(v.tier_to + 1, cardinality(l.tiers))],
           (truerank.season_of_ranking(b, v.season)).label
    FROM (
        SELECT DISTINCT ON (x.member) x.member, x.tier_to, x.season
        FROM truerank.league_move AS x
        WHERE x.board_id = p_board_id AND x.period = p_period AND x.member > p_after COLLATE "C"
        ORDER BY x.member, x.season DESC
    ) AS v
    JOIN truerank.board AS b ON b.id = p_board_id
    JOIN truerank.league AS l
      ON l.board_id = b.id AND l.period = p_period AND l.dropped_at IS NULL
    WHERE v.tier_to > 0
    ORDER BY v.member LIMIT p_limit
$$;
