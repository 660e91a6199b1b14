-- merge_members: let the events of one member count for another, on all boards and for good.
--
-- The events keep the id they came with, so a repeat of an old one is still a duplicate. The
-- standings of p_from go, those of p_into are computed from the events of both, and what is
-- submitted for p_from from now on counts for p_into. p_from is withheld whatever still arrives;
-- what a transaction under way adds to it is brought over by the worker (see sweep_members).
-- p_into keeps its own states, and gets bans of p_from; its name, tiers and places in cohorts where
-- it has none of its own; where it has no events it is p_from under another id (see carry_said). What
-- a freeze shows of p_from is shown of p_into, where that has no place there. In the caller's
-- transaction.
-- Repeat:  the same merge again changes nothing.
-- Locks:   one row that all merges lock; both members (see hold_members), so that nothing said of one
--          is passed by; the boards of p_from and its closed seasons; then as tell_freezes and
--          refold_member.
-- Returns: one row: changed or same; or, with nothing changed, merge_cycle (both are one already),
--          merged_elsewhere (p_from was merged into another), total_out_of_range. The member that
--          remains, the transaction, the groups of its boards.
-- Raises:  25001 above READ COMMITTED; 22023 for a bad id; 55P03 where others hold a lock for two
--          seconds: who waits for the merge waits for them, too.
CREATE OR REPLACE FUNCTION truerank.merge_members(
    p_from text, p_into text, p_actor text, p_reason text
) RETURNS TABLE (outcome text, member text, token xid8, groups smallint[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_merged_into text;
    v_renamed boolean;
BEGIN
    PERFORM truerank.need_read_committed();
    IF p_from IS NULL OR p_into IS NULL OR char_length(p_from) NOT BETWEEN 1 AND 200
       OR char_length(p_into) NOT BETWEEN 1 AND 200 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a member''s id has 1 to 200 characters';
    END IF;
    token := pg_current_xact_id();
    UPDATE truerank.merge_fence SET merges = merges + 1;
    member := truerank.owner_of(p_into);
    SELECT m.merged_into INTO v_merged_into FROM truerank.member AS m WHERE m.id = p_from;
    outcome := CASE WHEN p_from = member THEN 'merge_cycle'
                    WHEN v_merged_into = member THEN 'same'
                    WHEN v_merged_into IS NOT NULL THEN 'merged_elsewhere' END;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    BEGIN
        PERFORM truerank.hold_members(ARRAY[p_from, member]);
        PERFORM truerank.lock_boards_of(p_from, 0);
        PERFORM truerank.hold_closed(ARRAY(SELECT r FROM truerank.member_rankings(p_from, 0) AS r));
        PERFORM truerank.lift_bans(ARRAY[p_from, member], NULL);
        -- Later statements: whoever said something, or settled a season, has committed.
        v_renamed := truerank.carry_said(p_from, member);
        UPDATE truerank.member AS m SET
            merged_into = merge_members.member,
            changed_at = CASE m.id WHEN p_from THEN clock_timestamp() ELSE m.changed_at END
        WHERE m.id = p_from OR m.merged_into = p_from;
        INSERT INTO truerank.merging (member) VALUES (p_from)
        ON CONFLICT ON CONSTRAINT merging_pkey DO UPDATE SET known_from = NULL;
        PERFORM truerank.change_state(0, p_from, 'merge', NULL);
        -- Before any standing, as in end_past, or the two could wait for each other.
        PERFORM truerank.tell_freezes(0);
        PERFORM truerank.carry_cohorts(p_from, member);
        PERFORM truerank.refold_member(member);
        PERFORM truerank.carry_frozen(p_from, member);
        INSERT INTO truerank.audit (actor, action, subject, reason, detail)
        VALUES (p_actor, 'merge_members', member, p_reason, jsonb_strip_nulls(
            jsonb_build_object('from', p_from, 'renamed', nullif(v_renamed, false))));
        outcome := 'changed';
    EXCEPTION WHEN numeric_value_out_of_range THEN
        outcome := 'total_out_of_range';
    END;
    groups := ARRAY(
        SELECT DISTINCT b.grp FROM truerank.board AS b 
        WHERE truerank.has_history(b, truerank.names_of(merge_members.member)));
    RETURN NEXT;
END
$$;
