-- begin_freeze: let the public be shown a season as it is at an instant, from then on.
--
-- p_season null: as in find_season. p_at null: now. The copy that is shown is made by take_freeze.
-- p_every: all seasons that hold at that instant and aren't final, at one and the same instant. Those
-- that are frozen already, or are to be before it, stay so.
-- Returns: one row: begun; moved where it was to be later; same where the season is frozen, or about
--          to be by then; board_unknown or season_unknown with nothing done; a freeze, of several
--          one that is begun or moved, and when it is due; all of them.
-- Raises:  22023 where p_at is more than a minute ago; 55P03 where another one is at work on it.
CREATE OR REPLACE FUNCTION truerank.begin_freeze(
    p_board text, p_season text, p_at timestamptz, p_actor text, p_reason text,
    p_every boolean DEFAULT false
) RETURNS TABLE (outcome text, id bigint, due_at timestamptz, ids bigint[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    v_board truerank.board;
    v_season record;
    v_freeze truerank.freeze;
    v_at timestamptz := coalesce(p_at, clock_timestamp());
    v_together bigint;
    v_done text;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        outcome := 'board_unknown';
        RETURN NEXT;
        RETURN;
    ELSIF p_at < clock_timestamp() - interval '1 minute' OR NOT isfinite(p_at) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a season is frozen now, or later';
    END IF;
    outcome := 'season_unknown';
    FOR v_season IN
        SELECT s.ranking, s.label FROM truerank.find_season(v_board.id, p_season) AS s
        WHERE NOT p_every
        UNION ALL
        SELECT n.ranking, n.label FROM truerank.seasons_now(v_board, v_at) AS n WHERE p_every
        ORDER BY 1
    LOOP
        v_together := CASE WHEN p_every THEN coalesce(
            v_together, nextval(pg_get_serial_sequence('truerank.freeze', 'id'))) END;
        INSERT INTO truerank.freeze AS f
            (board_id, ranking, season, actor, reason, due_at, together)
        VALUES (v_board.id, v_season.ranking, v_season.label, p_actor, p_reason, v_at, v_together)
        ON CONFLICT (ranking) WHERE revealed_at IS NULL DO NOTHING
        RETURNING f.* INTO v_freeze;
        v_done := 'begun';
        IF v_freeze.id IS NULL THEN
            UPDATE truerank.freeze AS f SET due_at = v_at, together = v_together
            WHERE f.ranking = v_season.ranking AND f.revealed_at IS NULL AND f.frozen_at IS NULL
              AND f.due_at > v_at
            RETURNING f.* INTO v_freeze;
            v_done := 'moved';
        END IF;
        IF v_freeze.id IS NULL THEN
            SELECT f.* INTO v_freeze FROM truerank.freeze AS f
            WHERE f.ranking = v_season.ranking AND f.revealed_at IS NULL;
            v_done := 'same';
        ELSE
            INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
            VALUES (v_board.id, p_actor, 'freeze_season', v_season.label, p_reason,
                    jsonb_build_object('due_at', v_freeze.due_at));
        END IF;
        IF v_freeze.id IS NULL THEN
            RAISE serialization_failure
                USING MESSAGE = 'the season was revealed just now; retry';
        END IF;
        ids := ids || v_freeze.id;
        IF outcome = 'season_unknown' OR outcome = 'same' AND v_done <> 'same' THEN
            outcome := v_done;
            id := v_freeze.id;
            due_at := v_freeze.due_at;
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
