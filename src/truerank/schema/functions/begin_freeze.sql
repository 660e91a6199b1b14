-- begin_freeze: let the public be shown a season as it is at an instant, from then on.
--
-- p_season null: as in find_season. p_at null: now. The copy that is shown is made by take_freeze.
-- Returns: one row: begun; moved where it was to be later; same where the season is frozen, or about
--          to be by then; board_unknown or season_unknown with nothing done; the freeze, and when it
--          is due.
-- Raises:  22023 where p_at is more than a minute ago; 55P03 where another one is at work on it.
CREATE OR REPLACE FUNCTION truerank.begin_freeze(
    p_board text, p_season text, p_at timestamptz, p_actor text, p_reason text
) RETURNS TABLE (outcome text, id bigint, due_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    v_board_id integer;
    v_ranking bigint;
    v_season text;
    v_at timestamptz := coalesce(p_at, clock_timestamp());
BEGIN
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        outcome := 'board_unknown';
    ELSIF p_at < clock_timestamp() - interval '1 minute' OR NOT isfinite(p_at) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a season is frozen now, or later';
    ELSE
        SELECT s.ranking, s.label INTO v_ranking, v_season
        FROM truerank.find_season(v_board_id, p_season) AS s;
        outcome := CASE WHEN v_ranking IS NULL THEN 'season_unknown' END;
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO truerank.freeze AS f (board_id, ranking, season, actor, reason, due_at)
    VALUES (v_board_id, v_ranking, v_season, p_actor, p_reason, v_at)
    ON CONFLICT (ranking) WHERE revealed_at IS NULL DO NOTHING
    RETURNING f.id, f.due_at INTO id, due_at;
    outcome := 'begun';
    IF id IS NULL THEN
        UPDATE truerank.freeze AS f SET due_at = v_at
        WHERE f.ranking = v_ranking AND f.revealed_at IS NULL AND f.frozen_at IS NULL
          AND f.due_at > v_at
        RETURNING f.id, f.due_at INTO id, due_at;
        outcome := 'moved';
    END IF;
    IF id IS NULL THEN
        SELECT f.id, f.due_at INTO id, due_at FROM truerank.freeze AS f
        WHERE f.ranking = v_ranking AND f.revealed_at IS NULL;
        outcome := 'same';
    ELSE
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_board_id, p_actor, 'freeze_season', v_season, p_reason,
                jsonb_build_object('due_at', due_at));
    END IF;
    IF id IS NULL THEN
        RAISE serialization_failure USING MESSAGE = 'the season was revealed just now; retry';
    END IF;
    RETURN NEXT;
END
$$;
