-- divide_slice: put the next members of a season into cohorts, first come, first served.
--
-- In the caller's transaction, which holds the league's row locked: nobody else divides. Members
-- whose standing somebody just changes are passed over; nothing is waited for.
-- Returns: how many were put into one.
-- Raises:  25001 above READ COMMITTED.
CREATE OR REPLACE FUNCTION truerank.divide_slice(
    p_league truerank.league, p_season bigint, p_members_max integer
) RETURNS integer
-- Of a season that is new to the statistics the planner expects nothing, and takes any index.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_group smallint := (SELECT b.grp FROM truerank.board AS b WHERE b.id = p_league.board_id);
    v_locked text[];
    v_cohort truerank.cohort;
    v_bucket record;
    v_at integer;
    v_taken integer;
BEGIN
    PERFORM truerank.need_read_committed();
    FOR v_try IN 0..19 LOOP  -- one long transaction may hold all who are next
        SELECT array_agg(x.member) INTO v_locked
        FROM (
            SELECT s.member FROM truerank.standing AS s
            WHERE s.ranking = p_season AND s.member = ANY (ARRAY(
                SELECT m.member FROM truerank.cohort_member AS m
                WHERE m.season = p_season AND m.cohort IS NULL
                ORDER BY m.first_position, m.member
                LIMIT p_members_max OFFSET v_try * p_members_max))
            ORDER BY s.member FOR UPDATE SKIP LOCKED
        ) AS x;
        EXIT WHEN v_locked IS NOT NULL;
    END LOOP;
    IF v_locked IS NULL THEN
        RETURN 0;
    END IF;
    -- A later statement: whoever held them before has committed.
    FOR v_bucket IN
        WITH waiting AS (
            SELECT array_agg(m.member ORDER BY m.first_position, m.member) AS members
            FROM truerank.cohort_member AS m
            WHERE m.season = p_season AND m.member = ANY (v_locked)
              AND coalesce(m.cohort, 0) = 0  -- IS NULL would have all who wait looked through
        )
        SELECT u.tier, CASE WHEN p_league.by_key THEN coalesce(k.key, '') ELSE '' END AS key,
               array_agg(u.member ORDER BY u.ord) AS members
        FROM waiting AS w
        CROSS JOIN LATERAL unnest(w.members, truerank.tiers_of(p_league, p_season, w.members))
            WITH ORDINALITY AS u (member, tier, ord)
        LEFT JOIN truerank.league_key AS k
          ON k.board_id = p_league.board_id AND k.member = u.member
        GROUP BY 1, 2 ORDER BY min(u.ord)
    LOOP
        v_at := 1;
        WHILE v_at <= cardinality(v_bucket.members) LOOP
            v_cohort := truerank.cohort_room(p_league, p_season, v_bucket.tier, v_bucket.key);
            v_taken := least(v_cohort.size - v_cohort.members,
                             cardinality(v_bucket.members) - v_at + 1);
            UPDATE truerank.cohort AS c SET members = c.members + v_taken
            WHERE c.ranking = v_cohort.ranking;
            UPDATE truerank.cohort_member AS m SET cohort = v_cohort.ranking
            WHERE m.season = p_season AND m.member = ANY (v_bucket.members[v_at:v_at + v_taken - 1]);
            v_at := v_at + v_taken;
        END LOOP;
    END LOOP;
    PERFORM truerank.mirror_changes(v_group, pg_current_xact_id(), ARRAY(
        SELECT (p_season, m, NULL, 0, NULL)::truerank.changed FROM unnest(v_locked) AS m));
    RETURN cardinality(v_locked);
END
$$;
