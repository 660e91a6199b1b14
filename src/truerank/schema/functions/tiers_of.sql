-- tiers_of: in which tier of a league each of some members is in a season, in the given order.
CREATE OR REPLACE FUNCTION truerank.tiers_of(
    p_league truerank.league, p_season bigint, p_members text[]
) RETURNS integer[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT least(coalesce(v.tier_to, 0), cardinality(p_league.tiers) - 1)
        FROM unnest(p_members) WITH ORDINALITY AS u (member, ord)
        LEFT JOIN LATERAL (
            SELECT x.tier_to FROM truerank.league_move AS x
            WHERE x.board_id = p_league.board_id AND x.period = p_league.period
              AND x.member = u.member AND x.season < p_season
            ORDER BY x.season DESC LIMIT 1
        ) AS v ON true
        ORDER BY u.ord)
$$;
