-- divide_season: divide some of who is left of a season that is to be settled.
--
-- In a transaction of its own; repeat it until it says divided.
-- Raises:  55P03 where somebody holds a standing locked: repeat it.
-- Returns: divided (nobody is left), some, or waiting: others divide, or writers are under way that
--          may not know of the league, or change a standing; earlier_open: the season before
--          has to be final first (see season_before); board_unknown, season_unknown.
CREATE OR REPLACE FUNCTION truerank.divide_season(
    p_board text, p_season text, p_members_max integer
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '200ms' AS $$
DECLARE
    v_board_id integer;
    v_id bigint;
    v_league truerank.league;
    v_done integer;
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    v_id := (SELECT s.ranking FROM truerank.find_season(v_board_id, coalesce(p_season, '')) AS s);
    IF v_board_id IS NULL OR v_id IS NULL THEN
        RETURN CASE WHEN v_board_id IS NULL THEN 'board_unknown' ELSE 'season_unknown' END;
    ELSIF NOT truerank.undivided(v_id) THEN
        RETURN 'divided';
    END IF;
    SELECT l.* INTO v_league FROM truerank.league AS l
    WHERE l.dropped_at IS NULL AND v_id >= l.from_ranking AND v_id < l.to_ranking
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'waiting';
    END IF;
    IF v_league.scanned AND truerank.season_before(v_id) IS NOT NULL THEN
        RETURN 'earlier_open';
    END IF;
    v_done := CASE WHEN v_league.scanned
        THEN truerank.divide_slice(v_league, v_id, p_members_max)
        ELSE truerank.scan_league(v_league, p_members_max) END;
    RETURN CASE WHEN NOT truerank.undivided(v_id) THEN 'divided'
                WHEN v_done > 0 THEN 'some' ELSE 'waiting' END;
END
$$;
