-- lift_bans: end bans whose time has passed, of these members or of all; at most p_limit (null: all).
--
-- What another transaction is at work on is passed over: nobody waits here.
-- Returns: how many were lifted.
CREATE OR REPLACE FUNCTION truerank.lift_bans(p_members text[], p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();  -- itself it can't be looked up in an index
    v_lifted truerank.member_state[];
BEGIN
    -- Asked whether there is one below, the planner may expect many, and read the whole table.
    IF coalesce((SELECT min(s.until) FROM truerank.member_state AS s) > v_now, true) THEN
        RETURN 0;
    END IF;
    WITH due AS (
        SELECT s.board_id, s.member FROM truerank.member_state AS s
        WHERE s.until <= v_now AND (p_members IS NULL OR s.member = ANY (p_members))
        ORDER BY s.until LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), lifted AS (
        UPDATE truerank.member_state AS s SET
            state = CASE WHEN s.hides OR s.erasing THEN 'hidden' ELSE 'active' END, until = NULL,
            version = nextval('truerank.version'), changed_at = clock_timestamp()
        FROM due AS d WHERE s.board_id = d.board_id AND s.member = d.member
        RETURNING s.*
    )
    SELECT array_agg((l.*)::truerank.member_state) INTO v_lifted FROM lifted AS l;
    PERFORM truerank.log_states(v_lifted);
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    SELECT nullif(l.board_id, 0), 'truerank', 'unban_member', l.member, 'the ban has ended',
           jsonb_build_object('state', l.state)
    FROM unnest(v_lifted) AS l;
    RETURN coalesce(cardinality(v_lifted), 0);
END
$$;
