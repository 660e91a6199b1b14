-- find_cohort: a cohort of a season, by its number or by one of its members.
--
-- p_season null: as in find_season. Of who was merged into another, the other's.
-- Returns: no row where there is no such season; else one, with ranking null where there is no such
--          cohort, or the member is in none (yet). frozen: the season is shown as it was, and so its
--          cohorts aren't. The first promote go up, of the others the last demote go down; 0 in
--          the highest and in the lowest tier. moved: by the settlement p_member went up (1) or
--          down (-1) a tier. withheld: p_member is hidden, banned or deleted, and names
--          no cohort to the public. spared: so many first ones go down in no tier, however small
--          the cohort is.
CREATE OR REPLACE FUNCTION truerank.find_cohort(
    p_board_id integer, p_season text, p_number integer, p_member text
) RETURNS TABLE (season text, ranking bigint, number integer, tier integer, tier_name text,
                 key text, size integer, members integer, promote integer, demote integer,
                 frozen boolean, moved integer, withheld boolean, spared integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC' AS $$
DECLARE
    v_id bigint;
    v_period text;
    v_cohort truerank.cohort;
    v_league truerank.league;
    v_owner text := truerank.owner_of(p_member);
BEGIN
    SELECT s.ranking, s.label, s.period INTO v_id, season, v_period
    FROM truerank.find_season(p_board_id, p_season) AS s;
    IF v_id IS NULL THEN
        RETURN;
    END IF;
    SELECT c.* INTO v_cohort FROM truerank.cohort AS c
    WHERE c.season = v_id AND CASE WHEN p_member IS NULL THEN c.number = p_number
        ELSE c.ranking = (SELECT m.cohort FROM truerank.cohort_member AS m
                          WHERE m.season = v_id AND m.member = v_owner) END;
    SELECT l.* INTO v_league FROM truerank.league AS l
    WHERE l.board_id = p_board_id AND l.period = v_period
    ORDER BY l.dropped_at DESC NULLS FIRST LIMIT 1;
    ranking := v_cohort.ranking;
    number := v_cohort.number;
    tier := v_cohort.tier;
    tier_name := v_league.tiers[v_cohort.tier + 1];
    key := v_cohort.key;
    size := v_cohort.size;
    members := v_cohort.members;
    promote := CASE WHEN v_cohort.tier + 1 >= cardinality(v_league.tiers) THEN 0
                    ELSE v_league.promote END;
    spared := greatest(v_league.promote, 1);
    demote := CASE WHEN v_cohort.tier = 0 THEN 0 ELSE v_league.demote END;
    frozen := EXISTS (SELECT FROM truerank.shown_ranking(v_id));
    moved := (SELECT sign(v.tier_to - v.tier_from)::integer FROM truerank.league_move AS v
              WHERE v.board_id = p_board_id AND v.period = v_period AND v.season = v_id
                AND v.member = v_owner);
    withheld := EXISTS (SELECT FROM truerank.withheld_as(p_board_id, v_owner)) OR EXISTS (
        SELECT FROM truerank.member_state AS s
        WHERE s.member = v_owner AND s.board_id IN (0, p_board_id) AND s.state = 'deleted'
          AND NOT EXISTS (SELECT FROM truerank.standing AS x
                          WHERE x.ranking = v_id AND x.member = v_owner));
    RETURN NEXT;
END
$$;
