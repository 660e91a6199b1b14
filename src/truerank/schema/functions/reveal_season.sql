-- reveal_season: show the public a season again as it is now. One step, however large it is.
--
-- A freeze that isn't due yet is called off, and a copy that is being made. p_season null: as in
-- find_season. p_every: all seasons of the board that are frozen, or to be.
-- Returns: revealed, same (it wasn't frozen), board_unknown or season_unknown.
-- Raises:  55P03 where another one is at work on the freeze for half a second.
CREATE OR REPLACE FUNCTION truerank.reveal_season(
    p_board text, p_season text, p_actor text, p_reason text, p_every boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    v_board_id integer;
    v_ranking bigint;
    v_revealed text[];
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'board_unknown';
    END IF;
    IF NOT p_every THEN
        v_ranking := (SELECT s.ranking FROM truerank.find_season(v_board_id, p_season) AS s);
        IF v_ranking IS NULL THEN
            RETURN 'season_unknown';
        END IF;
    END IF;
    PERFORM FROM truerank.freeze AS f
    WHERE f.board_id = v_board_id AND (p_every OR f.ranking = v_ranking) AND f.revealed_at IS NULL
    ORDER BY f.id FOR UPDATE;
    WITH revealed AS (
        UPDATE truerank.freeze AS f SET
            revealed_at = clock_timestamp(),
            -- There is no copy: nothing to drop.
            dropped_at = CASE WHEN f.frozen_at IS NULL THEN clock_timestamp() END
        WHERE f.board_id = v_board_id AND (p_every OR f.ranking = v_ranking)
          AND f.revealed_at IS NULL
        RETURNING f.season
    )
    SELECT array_agg(r.season ORDER BY r.season) INTO v_revealed FROM revealed AS r;
    IF v_revealed IS NULL THEN
        RETURN 'same';
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    SELECT v_board_id, p_actor, 'reveal_season', r.season, p_reason
    FROM unnest(v_revealed) AS r (season);
    RETURN 'revealed';
END
$$;
