-- change_state: give a member another state in one scope, and log it where it shows.
--
-- p_action: hide, show, ban (p_until null: for good), unban, delete, merge. A ban and the wish to
-- be hidden are kept apart: neither takes the other away. Deleting ends both. Who is being erased is
-- hidden without a wish, and stays so until that is done.
-- The caller holds the member, see hold_owner.
-- The version is drawn after the row's lock, so versions of one scope are in the order of commits.
-- Returns: whether anything changed.
-- Raises:  40001 where the member was merged meanwhile.
CREATE OR REPLACE FUNCTION truerank.change_state(
    p_board_id integer, p_member text, p_action text, p_until timestamptz
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_old truerank.member_state;
    v_new truerank.member_state;
BEGIN
    INSERT INTO truerank.member_state (board_id, member) VALUES (p_board_id, p_member)
    ON CONFLICT DO NOTHING;
    SELECT s.* INTO STRICT v_old FROM truerank.member_state AS s
    WHERE s.board_id = p_board_id AND s.member = p_member FOR NO KEY UPDATE;
    IF v_old.state = 'merged' THEN
        RAISE serialization_failure USING MESSAGE = 'the member was merged meanwhile; retry';
    END IF;
    v_new := v_old;
    IF v_old.state = 'banned' AND v_old.until <= clock_timestamp() THEN
        v_new.state := 'active';
        v_new.until := NULL;
    END IF;
    v_new.hides := CASE p_action WHEN 'hide' THEN true WHEN 'show' THEN false
                                 WHEN 'delete' THEN false ELSE v_old.hides END;
    IF p_action = 'ban' THEN
        v_new.state := 'banned';
        v_new.until := p_until;
    ELSIF p_action IN ('delete', 'merge') THEN
        v_new.state := CASE p_action WHEN 'delete' THEN 'deleted' ELSE 'merged' END;
        v_new.until := NULL;
    ELSIF p_action = 'unban' OR v_new.state <> 'banned' THEN
        v_new.state := CASE
            WHEN v_new.hides THEN 'hidden'
            WHEN v_old.state = 'deleted' AND p_action IN ('show', 'unban') THEN 'deleted'
            ELSE 'active' END;
        v_new.until := NULL;
    END IF;
    IF v_new.erasing AND v_new.state IN ('active', 'deleted') THEN
        v_new.state := 'hidden';
    END IF;
    IF v_new IS NOT DISTINCT FROM v_old THEN
        RETURN false;
    END IF;
    UPDATE truerank.member_state AS s SET
        state = v_new.state, until = v_new.until, hides = v_new.hides,
        -- What isn't logged keeps the version that was.
        version = CASE WHEN truerank.state_letter(v_new.state) = truerank.state_letter(v_old.state)
                       THEN s.version ELSE nextval('truerank.version') END,
        changed_at = clock_timestamp()
    WHERE s.board_id = p_board_id AND s.member = p_member
    RETURNING s.* INTO v_new;
    IF v_new.version <> v_old.version THEN
        PERFORM truerank.log_states(ARRAY[v_new]);
    END IF;
    RETURN true;
END
$$;
