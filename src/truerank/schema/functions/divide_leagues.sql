-- divide_leagues: one piece of the work of dividing members into cohorts. Workers do this.
--
-- A season whose tiers another one decides waits for that one to be final. One at a time works for
-- a league: others pass it over. In a transaction of its own.
-- Returns: how many members were looked at; 0: nothing is to be done now.
CREATE OR REPLACE FUNCTION truerank.divide_leagues(p_members_max integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '200ms' AS $$
DECLARE
    v_league truerank.league;
    v_season bigint;
    v_done bigint;
BEGIN
    FOR v_league IN
        SELECT l.* FROM truerank.league AS l JOIN truerank.board AS b ON b.id = l.board_id
        WHERE l.dropped_at IS NULL AND b.deleted_at IS NULL
          AND (NOT l.scanned OR EXISTS (
              SELECT FROM truerank.cohort_member AS m
              WHERE m.cohort IS NULL AND m.season >= l.from_ranking AND m.season < l.to_ranking))
        ORDER BY l.id
    LOOP
        SELECT l.* INTO v_league FROM truerank.league AS l
        WHERE l.id = v_league.id AND l.dropped_at IS NULL FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        IF NOT v_league.scanned THEN
            BEGIN
                v_done := truerank.scan_league(v_league, p_members_max);
            EXCEPTION WHEN lock_not_available THEN  -- the next call goes on there
                CONTINUE;
            END;
            IF v_done > 0 THEN
                RETURN v_done;
            END IF;
            -- In order of the first events: nobody is divided before all have been looked at.
            CONTINUE WHEN NOT (SELECT l.scanned FROM truerank.league AS l WHERE l.id = v_league.id);
        END IF;
        v_season := v_league.from_ranking - 1;
        LOOP
            SELECT m.season INTO v_season FROM truerank.cohort_member AS m
            WHERE m.cohort IS NULL AND m.season > v_season AND m.season < v_league.to_ranking
            ORDER BY m.season LIMIT 1;
            EXIT WHEN NOT FOUND;
            IF EXISTS (SELECT FROM truerank.ranking AS r
                       WHERE r.id = v_season AND r.state = 'final') THEN
                -- Who came by a revision has no cohort.
                DELETE FROM truerank.cohort_member AS m
                WHERE m.season = v_season AND m.cohort IS NULL;
                CONTINUE;
            END IF;
            CONTINUE WHEN truerank.league_waits_for(v_league, v_season) IS NOT NULL;
            v_done := truerank.divide_slice(v_league, v_season, p_members_max);
            IF v_done > 0 THEN
                RETURN v_done;
            END IF;
        END LOOP;
    END LOOP;
    RETURN 0;
END
$$;
