-- hold_owner: for whom what is said of an id holds; nobody merges or erases it until this ends.
--
-- Call it before anything is said of a member: a merge carries over what it sees, and an erasure
-- removes it, so neither may pass by what is not yet committed.
-- Locks:   the member's state everywhere, with others who say something of it. Who merges or erases it
--          is waited for, and then it is the one that remains.
-- Returns: the member itself, or the one it was merged into.
-- Raises:  40001 above READ COMMITTED where it was merged, or erased, since.
CREATE OR REPLACE FUNCTION truerank.hold_owner(p_member text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_owner text;
BEGIN
    -- Known to be under way before it looks for whom the member counts: see sweep_members.
    PERFORM pg_current_xact_id();
    FOR v_try IN 1..20 LOOP
        v_owner := truerank.owner_of(p_member);
        -- A row must be there to be locked. It may go with an erasure in between.
        INSERT INTO truerank.member_state (board_id, member) VALUES (0, v_owner)
        ON CONFLICT DO NOTHING;
        PERFORM FROM truerank.member_state AS s
        WHERE s.board_id = 0 AND s.member = v_owner FOR KEY SHARE;
        IF FOUND AND truerank.owner_of(p_member) = v_owner THEN
            RETURN v_owner;
        END IF;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = 'the member is merged all the time; retry';
END
$$;
