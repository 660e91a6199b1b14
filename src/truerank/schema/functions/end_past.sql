-- end_past: let a member's events up to now count no longer, and drop its standings.
--
-- So of those merged into it: where a season ended before the board's history begins, their
-- standings are still there.
-- p_board_id 0: on all boards. An event that commits later begins at zero: what is dropped and
-- what has ended are told apart by one snapshot, after all standings that it shows were locked. A
-- command under way has either ended by then, or waits, or touches none of those standings.
-- Locks:   the boards' advisory locks (shared), rows of closed seasons, as tell_freezes, standings by
--          ranking and member.
-- Returns: how many events have ended.
-- Raises:  25001 above READ COMMITTED; 40001 where commands come faster than they can be waited for.
CREATE OR REPLACE FUNCTION truerank.end_past(p_member text, p_board_id integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[] := truerank.names_of(p_member);
    v_rankings bigint[];
    v_members text[];
    v_whole boolean;
    v_ended bigint;
    v_changed truerank.changed[];
BEGIN
    PERFORM truerank.need_read_committed();
    PERFORM truerank.lock_boards_of(p_member, p_board_id);
    -- No season is settled between what is dropped here and when it is said to have ended.
    PERFORM truerank.hold_closed(ARRAY(
        SELECT x FROM truerank.member_rankings(p_member, p_board_id) AS x));
    -- A copy that is being made may have seen what is dropped here.
    PERFORM truerank.tell_freezes(p_board_id);
    FOR v_try IN 1..20 LOOP
        SELECT array_agg(s.ranking), array_agg(s.member) INTO v_rankings, v_members
        FROM (SELECT s.ranking, s.member FROM truerank.standing AS s
              WHERE s.ranking = ANY (ARRAY(
                      SELECT r FROM truerank.member_rankings(p_member, p_board_id) AS r))
                AND s.member = ANY (v_names)
              ORDER BY s.ranking, s.member FOR UPDATE) AS s;
        WITH seen AS MATERIALIZED (
            SELECT DISTINCT s.ranking, s.member
            FROM truerank.member_rankings(p_member, p_board_id) AS r
            JOIN truerank.standing AS s ON s.ranking = r AND s.member = ANY (v_names)
        ), whole AS MATERIALIZED (
            SELECT NOT EXISTS (
                SELECT FROM seen AS s WHERE (s.ranking, s.member) NOT IN (
                    SELECT l.ranking, l.member
                    FROM unnest(v_rankings, v_members) AS l (ranking, member))) AS is_so
        ), ended AS (
            UPDATE truerank.event AS e SET ended_at = clock_timestamp()
            WHERE (SELECT w.is_so FROM whole AS w) AND e.member = ANY (v_names)
              AND e.board_id = ANY (ARRAY(
                  SELECT b.id FROM truerank.board AS b
                  WHERE (p_board_id = 0 OR b.id = p_board_id)
                    AND truerank.has_history(b, v_names)))
              AND e.ended_at IS NULL
            RETURNING 1
        ), forgotten AS (
            DELETE FROM truerank.opening AS o
            WHERE (SELECT w.is_so FROM whole AS w) AND o.member = ANY (v_names)
              AND o.ranking IN (SELECT x.ranking FROM seen AS x)
            RETURNING 1
        ), gone AS (
            DELETE FROM truerank.standing AS s
            WHERE (SELECT w.is_so FROM whole AS w) AND s.member = ANY (v_names)
              AND s.ranking IN (SELECT x.ranking FROM seen AS x)
            RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
        )
        SELECT w.is_so,
               (SELECT count(*) FROM ended) + (SELECT count(*) FROM forgotten),
               ARRAY(SELECT (g.*)::truerank.changed FROM gone AS g)
        INTO v_whole, v_ended, v_changed FROM whole AS w;
        IF v_whole THEN
            PERFORM truerank.log_by_board(v_changed);
            INSERT INTO truerank.privacy_change (grp)
            SELECT DISTINCT b.grp FROM unnest(v_changed) AS c
            JOIN truerank.board AS b ON b.id = c.ranking >> 36;
            RETURN v_ended;
        END IF;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = 'the member''s scores change all the time; retry';
END
$$;
