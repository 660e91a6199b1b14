-- reveal_season: show the public a season again as it is now. One step, however large it is.
--
-- A freeze that isn't due yet is called off, and a copy that is being made. p_season null: as in
-- find_season.
-- Returns: revealed, same (it wasn't frozen), board_unknown or season_unknown.
-- Raises:  55P03 where another one is at work on the freeze for half a second.
CREATE OR REPLACE FUNCTION truerank.reveal_season(
    p_board text, p_season text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    v_board_id integer;
    v_ranking bigint;
    v_season text;
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'board_unknown';
    END IF;
    SELECT s.ranking, s.label INTO v_ranking, v_season
    FROM truerank.find_season(v_board_id, p_season) AS s;
    IF v_ranking IS NULL THEN
        RETURN 'season_unknown';
    END IF;
    UPDATE truerank.freeze AS f SET
        revealed_at = clock_timestamp(),
        -- There is no copy: nothing to drop.
        dropped_at = CASE WHEN f.frozen_at IS NULL THEN clock_timestamp() END
    WHERE f.ranking = v_ranking AND f.revealed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'same';
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_board_id, p_actor, 'reveal_season', v_season, p_reason);
    RETURN 'revealed';
END
$$;
