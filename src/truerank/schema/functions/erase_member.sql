-- erase_member: begin to remove a person from everything, in the caller's transaction.
--
-- p_member and all ids merged into it are out of sight from the commit on; their events keep board,
-- value and time, and a stand-in for the id, which nobody can guess, and count no longer. What
-- transactions in progress add is removed too, once they have ended; until then the ids stay hidden.
-- What the outbox and Redis still hold goes with the next turns of the ring, which the worker
-- forces (see sweep_erasures). Only then is the erasure complete, and the ids leave its own row.
-- An event of a transaction that begins later is the first of a new life, at zero.
-- Locks:   one row that all merges lock, hold_members, then as end_past.
-- Returns: one row: changed, or same where it is under way and nothing has come since; the erasure,
--          the transaction, the groups of the boards on which the person had events.
-- Raises:  22023 for a bad member; 25001 above READ COMMITTED; see end_past.
CREATE OR REPLACE FUNCTION truerank.erase_member(p_member text, p_actor text, p_reason text)
RETURNS TABLE (outcome text, erasure uuid, token xid8, groups smallint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_owner text;
    v_names text[];
    v_stand_ins text[];
BEGIN
    PERFORM truerank.need_read_committed();
    IF p_member IS NULL OR char_length(p_member) NOT BETWEEN 1 AND 200 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a member''s id has 1 to 200 characters';
    END IF;
    token := pg_current_xact_id();
    -- No merge in between: names stay what they are.
    UPDATE truerank.merge_fence SET merges = merges + 1;
    v_owner := truerank.owner_of(p_member);
    v_names := truerank.names_of(v_owner);
    groups := ARRAY(SELECT DISTINCT b.grp FROM truerank.board AS b
                    WHERE truerank.has_history(b, v_names));

    PERFORM truerank.withhold_erased(v_names);
    PERFORM truerank.end_past(v_owner, 0);
    PERFORM truerank.leave_settlements(v_owner, 0);
    SELECT e.id INTO erasure FROM truerank.erasure AS e
    WHERE e.erased_at IS NULL AND e.swept_xid IS NULL AND v_names <@ e.names
      AND NOT EXISTS (SELECT FROM truerank.board AS b JOIN truerank.event AS x ON x.board_id = b.id
                      WHERE x.member = ANY (v_names))
      AND NOT EXISTS (SELECT FROM truerank.member AS m
                      WHERE m.id = ANY (v_names)
                        AND (m.display_name IS NOT NULL OR m.profile IS NOT NULL))
    LIMIT 1;
    IF erasure IS NOT NULL THEN
        outcome := 'same';
        RETURN NEXT;
        RETURN;
    END IF;
    v_stand_ins := ARRAY(
        SELECT 'erased-' || replace(gen_random_uuid()::text, '-', '') FROM unnest(v_names));
    INSERT INTO truerank.erasure (actor, reason, names, stand_ins, began_xid)
    VALUES (p_actor, p_reason, v_names, v_stand_ins, token)
    RETURNING id INTO erasure;
    INSERT INTO truerank.audit (actor, action, subject, reason)
    VALUES (p_actor, 'erase_member', v_stand_ins[1], p_reason);
    -- Also where the person itself asked for it, or the reason names it.
    PERFORM truerank.forget_names(v_names, v_stand_ins, true);
    -- Whoever was merged into the person is nobody's other name from now on.
    UPDATE truerank.member AS m SET merged_into = NULL, display_name = NULL, profile = NULL
    WHERE m.id = ANY (v_names);
    DELETE FROM truerank.merging AS g WHERE g.member = ANY (v_names);
    outcome := 'changed';
    RETURN NEXT;
END
$$;
