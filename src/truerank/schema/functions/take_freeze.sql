-- take_freeze: copy the standings of a season that is to be frozen, as this snapshot has them.
--
-- Call it at REPEATABLE READ in a transaction of its own. No writer waits for it, nor it for any.
-- From the commit on PostgreSQL shows the copy; the projection once it was told (log_frozen).
-- Members who aren't active are copied as well: what holds for them is looked up at each read.
-- Returns: taken; early, gone (revealed, or the board is deleted); same where it was taken before.
-- Raises:  25001 below REPEATABLE READ; 55P03 where another one takes it; 40001 where a member was
--          taken away meanwhile: try again.
CREATE OR REPLACE FUNCTION truerank.take_freeze(p_freeze bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_freeze truerank.freeze;
    v_id bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'repeatable read' THEN
        RAISE active_sql_transaction USING MESSAGE = 'call this at REPEATABLE READ';
    END IF;
    SELECT f.* INTO v_freeze FROM truerank.freeze AS f WHERE f.id = p_freeze FOR UPDATE NOWAIT;
    IF NOT FOUND OR v_freeze.revealed_at IS NOT NULL OR NOT EXISTS (
        SELECT FROM truerank.board AS b WHERE b.id = v_freeze.board_id AND b.deleted_at IS NULL) THEN
        RETURN 'gone';
    ELSIF v_freeze.frozen_at IS NOT NULL THEN
        RETURN 'same';
    ELSIF v_freeze.due_at > clock_timestamp() THEN
        RETURN 'early';
    END IF;
    v_id := truerank.frozen_id(v_freeze.board_id, p_freeze);
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at, cohort, kind)
    SELECT v_id, v_freeze.board_id, s.period, v_freeze.season,
           coalesce(s.starts_at, '-infinity'), coalesce(s.ends_at, 'infinity'), p_freeze::text,
           'frozen'
    FROM truerank.find_season(v_freeze.board_id, v_freeze.season) AS s;
    INSERT INTO truerank.standing
        (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
    SELECT v_id, s.member, s.score, s.ties, nextval('truerank.version'), s.event_at,
           s.event_position, s.moved, s.sort_key
    FROM truerank.standing AS s WHERE s.ranking = v_freeze.ranking;
    UPDATE truerank.freeze AS f SET frozen_at = now() WHERE f.id = p_freeze;
    RETURN 'taken';
END
$$;
