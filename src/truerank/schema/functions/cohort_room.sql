-- cohort_room: the cohort of a season, tier and key that takes the next members; made where all
-- are full.
--
-- In the caller's transaction, which holds the league's row locked.
CREATE OR REPLACE FUNCTION truerank.cohort_room(
    p_league truerank.league, p_season bigint, p_tier integer, p_key text
) RETURNS truerank.cohort
LANGUAGE plpgsql AS $$
DECLARE
    v_cohort truerank.cohort;
BEGIN
    SELECT c.* INTO v_cohort FROM truerank.cohort AS c
    WHERE c.season = p_season AND c.tier = p_tier AND c.key = p_key AND c.members < c.size
    ORDER BY c.number LIMIT 1;
    IF v_cohort.ranking IS NOT NULL THEN
        RETURN v_cohort;
    END IF;
    PERFORM truerank.note_rankings(ARRAY[p_season]);
    INSERT INTO truerank.cohort (ranking, season, number, tier, key, size)
    SELECT truerank.cohort_id(p_league.board_id, nextval('truerank.ranking_number')), p_season,
           coalesce((SELECT max(c.number) FROM truerank.cohort AS c WHERE c.season = p_season), 0)
               + 1,
           p_tier, p_key, p_league.size
    RETURNING * INTO v_cohort;
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at, cohort, kind)
    SELECT v_cohort.ranking, r.board_id, r.period, r.season, r.starts_at, r.ends_at,
           v_cohort.number::text, 'cohort'
    FROM truerank.ranking AS r WHERE r.id = p_season;
    RETURN v_cohort;
END
$$;
