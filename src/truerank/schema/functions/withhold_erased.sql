-- withhold_erased: hide these ids everywhere, whatever was said of them before.
CREATE OR REPLACE FUNCTION truerank.withhold_erased(p_names text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_logged truerank.member_state[];
BEGIN
    PERFORM truerank.hold_members(p_names);
    WITH said AS (
        UPDATE truerank.member_state AS s SET
            state = CASE WHEN s.board_id = 0 THEN 'hidden' ELSE 'deleted' END, until = NULL,
            hides = false, erasing = s.board_id = 0, version = nextval('truerank.version'),
            changed_at = clock_timestamp()
        WHERE s.member = ANY (p_names) RETURNING s.*
    )
    SELECT array_agg((s.*)::truerank.member_state) INTO v_logged FROM said AS s;
    PERFORM truerank.log_states(v_logged);
END
$$;
