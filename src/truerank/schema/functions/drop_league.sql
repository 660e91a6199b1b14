-- drop_league: divide no more members of a board's seasons of one period, and move none.
--
-- Cohorts that are there go on, and are settled with their season. Tiers stay as they are, for a
-- league that is set again.
-- Returns: dropped, league_unknown or board_unknown.
CREATE OR REPLACE FUNCTION truerank.drop_league(
    p_board text, p_period text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board_id integer;
    v_league truerank.league;
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    UPDATE truerank.league AS l SET dropped_at = clock_timestamp()
    WHERE l.board_id = v_board_id AND l.period = p_period AND l.dropped_at IS NULL
    RETURNING * INTO v_league;
    IF v_league.id IS NULL THEN
        RETURN 'league_unknown';
    END IF;
    -- What a command under way still adds does no harm: nobody looks for it any more.
    DELETE FROM truerank.cohort_member AS m
    WHERE m.cohort IS NULL AND m.season >= v_league.from_ranking AND m.season < v_league.to_ranking;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_board_id, p_actor, 'drop_league', p_period, p_reason);
    RETURN 'dropped';
END
$$;
