-- set_member_state: hide, show, ban, unban, reset or delete a member, in the caller's transaction.
--
-- p_board null: on all boards, those to come included; else on that board only. The stricter of the
-- two wins. p_action:
--   hide, show   the member's own wish; a ban is not touched by it
--   ban, unban   until p_until, or for good; it ends by itself, and who hid stays hidden
--   reset        its events count no longer, its standings go; its state stays
--   delete       the same, and all that was said of it is forgotten: what comes later begins anew
-- An id that was merged stands for the account it was merged into. Scores are taken all the while;
-- who merges or erases the member waits. While it is erased, it is out of sight whatever is said.
-- Every change is audited. It is in force in PostgreSQL from the commit.
-- Returns: one row: changed, same or board_unknown; the member; its state in that scope; the
--          transaction; the groups of the boards on which the member has events.
-- Locks:   as hold_owner; then the state of that scope, with others who change it.
-- Raises:  22023 for an unknown action, a bad member, or p_until with anything but a ban or in the
--          past; 25001 where reset or delete are called above READ COMMITTED; see hold_owner.
CREATE OR REPLACE FUNCTION truerank.set_member_state(
    p_member text, p_action text, p_actor text, p_reason text,
    p_board text DEFAULT NULL, p_until timestamptz DEFAULT NULL
) RETURNS TABLE (outcome text, member text, state text, until timestamptz, token xid8,
                 groups smallint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer := 0;
    v_changed boolean := false;
    v_ended bigint;
    v_scope integer;
    v_forgotten bigint[];  -- seasons in which forgotten events of the member count
BEGIN
    IF p_action IS NULL
       OR p_action NOT IN ('hide', 'show', 'ban', 'unban', 'reset', 'delete') THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'an action is one of hide, show, ban, unban, reset, delete';
    ELSIF p_member IS NULL OR char_length(p_member) NOT BETWEEN 1 AND 200 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a member''s id has 1 to 200 characters';
    ELSIF p_until IS NOT NULL
       AND (p_action <> 'ban' OR NOT isfinite(p_until) OR p_until <= clock_timestamp()) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'only a ban has an end, and it is to come';
    END IF;
    token := pg_current_xact_id();
    member := truerank.hold_owner(p_member);
    IF p_board IS NOT NULL THEN
        SELECT b.id INTO v_board_id FROM truerank.board AS b
        WHERE b.key = p_board AND b.deleted_at IS NULL;
        IF NOT FOUND THEN
            outcome := 'board_unknown';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    groups := ARRAY(
        SELECT DISTINCT b.grp FROM truerank.board AS b
        WHERE (v_board_id = 0 OR b.id = v_board_id) AND truerank.has_history(b, truerank.names_of(member)));

    IF p_action = 'delete' THEN
        -- Before the standings, as merges and commands that lift a ban lock them.
        INSERT INTO truerank.member_state (board_id, member) VALUES (v_board_id, member)
        ON CONFLICT DO NOTHING;
        PERFORM FROM truerank.member_state AS s
        WHERE s.member = set_member_state.member AND (v_board_id = 0 OR s.board_id = v_board_id)
        ORDER BY s.board_id FOR NO KEY UPDATE;
    END IF;
    IF p_action = 'reset' THEN
        v_forgotten := ARRAY(
            SELECT DISTINCT o.ranking FROM truerank.member_rankings(member, v_board_id) AS r
            JOIN truerank.opening AS o
              ON o.ranking = r AND o.member = ANY (truerank.names_of(set_member_state.member)));
    END IF;
    IF p_action IN ('reset', 'delete') THEN
        v_ended := truerank.end_past(member, v_board_id);
        v_changed := v_ended > 0;
    END IF;
    INSERT INTO truerank.forgotten_reset (ranking, at)
    SELECT r, clock_timestamp() FROM unnest(v_forgotten) AS r ON CONFLICT DO NOTHING;
    IF p_action = 'delete' THEN
        PERFORM truerank.leave_settlements(member, v_board_id);
    END IF;
    IF p_action = 'delete' AND v_board_id = 0 THEN
        UPDATE truerank.member AS m SET display_name = NULL, profile = NULL
        WHERE m.id = ANY (truerank.names_of(set_member_state.member))
          AND (m.display_name IS NOT NULL OR m.profile IS NOT NULL);
        FOR v_scope IN
            SELECT s.board_id FROM truerank.member_state AS s
            WHERE s.member = set_member_state.member AND s.board_id <> 0 ORDER BY s.board_id
        LOOP
            v_changed := truerank.change_state(v_scope, member, 'delete', NULL) OR v_changed;
        END LOOP;
    END IF;
    IF p_action <> 'reset' THEN
        v_changed := truerank.change_state(v_board_id, member, p_action, p_until) OR v_changed;
    END IF;
    SELECT s.state, s.until INTO state, until FROM truerank.member_state AS s
    WHERE s.board_id = v_board_id AND s.member = set_member_state.member;
    state := coalesce(state, 'active');
    IF v_changed THEN
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (nullif(v_board_id, 0), p_actor, p_action || '_member', member, p_reason,
                jsonb_strip_nulls(jsonb_build_object(
                    'state', state, 'until', until, 'events_ended', v_ended,
                    'named', nullif(p_member, member))));
    END IF;
    outcome := CASE WHEN v_changed THEN 'changed' ELSE 'same' END;
    RETURN NEXT;
END
$$;
