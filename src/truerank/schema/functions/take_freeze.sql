-- take_freeze: copy the standings of a season that is to be frozen, as they are at one instant, and of
-- those that are to be frozen together with it.
--
-- Call it once wait_for_ends has returned, in a transaction of its own. No writer waits for it, nor
-- it for any. From the commit on PostgreSQL shows the copy; the projection once it was told
-- (log_frozen). Members who aren't active are copied as well: what holds for them is looked up at
-- each read.
-- frozen_at lies between two snapshots that are the same: no transaction ended meanwhile, so what
-- had committed by then is in the copy, and nothing that committed later.
-- p_insist: whoever takes members away waits until this has ended, instead of ending it.
-- Returns: taken; early, gone (revealed, or the board is deleted); same where it was taken before;
--          busy where another one takes it.
-- Raises:  25001 above READ COMMITTED; 40001 where a member was taken away meanwhile, or it was
--          revealed, or transactions ended all the time; 55P03 where somebody who takes members away
--          doesn't end: try again.
CREATE OR REPLACE FUNCTION truerank.take_freeze(p_freeze bigint, p_insist boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    v_freeze truerank.freeze;
    v_together bigint := (
        SELECT coalesce(f.together, f.id) FROM truerank.freeze AS f WHERE f.id = p_freeze);
    v_ids bigint[];
    v_before text;
    v_at timestamptz;
    v_exact boolean;
    v_ends bigint[];
    v_frozen integer;
BEGIN
    PERFORM truerank.need_read_committed();
    IF NOT pg_try_advisory_xact_lock(
        truerank.lock_class(), 1024 + (v_together & 1023)::integer) THEN
        RETURN 'busy';
    ELSIF p_insist THEN
        PERFORM FROM truerank.freeze AS f
        WHERE coalesce(f.together, f.id) = v_together AND f.dropped_at IS NULL
        ORDER BY f.id FOR UPDATE;
    END IF;
    SELECT f.* INTO v_freeze FROM truerank.freeze AS f WHERE f.id = p_freeze;
    IF NOT FOUND OR v_freeze.revealed_at IS NOT NULL OR NOT EXISTS (
        SELECT FROM truerank.board AS b WHERE b.id = v_freeze.board_id AND b.deleted_at IS NULL) THEN
        RETURN 'gone';
    ELSIF v_freeze.frozen_at IS NOT NULL THEN
        RETURN 'same';
    ELSIF v_freeze.due_at > clock_timestamp() THEN
        RETURN 'early';
    ELSIF coalesce(v_freeze.together, p_freeze) <> v_together THEN
        RETURN 'busy';  -- it was brought forward meanwhile
    END IF;
    v_ids := ARRAY(
        SELECT f.id FROM truerank.freeze AS f
        WHERE coalesce(f.together, f.id) = v_together AND f.dropped_at IS NULL
          AND f.revealed_at IS NULL AND f.frozen_at IS NULL ORDER BY f.id);
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at, cohort, kind)
    SELECT truerank.frozen_id(f.board_id, f.id), f.board_id, s.period, f.season,
           coalesce(s.starts_at, '-infinity'), coalesce(s.ends_at, 'infinity'), f.id::text,
           'frozen'
    FROM truerank.freeze AS f
    CROSS JOIN LATERAL truerank.find_season(f.board_id, f.season) AS s
    WHERE f.id = ANY (v_ids);
    FOR v_try IN 1..10000 LOOP
        SELECT pg_current_snapshot()::text, clock_timestamp() INTO v_before, v_at;
        WITH still AS MATERIALIZED (
            SELECT pg_current_snapshot()::text = v_before AS is_so
        ), copied AS (
            INSERT INTO truerank.standing
                (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
            SELECT truerank.frozen_id(f.board_id, f.id), s.member, s.score, s.ties,
                   nextval('truerank.version'), s.event_at, s.event_position, s.moved, s.sort_key
            FROM truerank.freeze AS f JOIN truerank.standing AS s ON s.ranking = f.ranking
            WHERE f.id = ANY (v_ids) AND (SELECT t.is_so FROM still AS t)
        )
        SELECT t.is_so, ARRAY(SELECT f.ends FROM truerank.freeze AS f
                              WHERE f.id = ANY (v_ids) ORDER BY f.id)
        INTO v_exact, v_ends FROM still AS t;
        EXIT WHEN v_exact;
    END LOOP;
    -- Not locked before: who takes members away, or reveals, would wait as long as the copy takes.
    UPDATE truerank.freeze AS f SET frozen_at = v_at, snapshot = v_before::pg_snapshot
    FROM unnest(v_ids, v_ends) AS u (id, ends)
    WHERE f.id = u.id AND f.ends = u.ends AND f.revealed_at IS NULL AND v_exact;
    GET DIAGNOSTICS v_frozen = ROW_COUNT;
    IF v_frozen < cardinality(v_ids) THEN
        RAISE serialization_failure USING MESSAGE = 'the season changed while it was copied; retry';
    END IF;
    RETURN 'taken';
END
$$;
