-- assign_league_key: say with whom a member is to share cohorts; p_key null: with anybody.
--
-- It holds for cohorts into which the member is put from now on; those it is in stay. An id that was
-- merged stands for the account it was merged into.
-- Locks:   as hold_owner.
-- Returns: assigned, same or board_unknown.
-- Raises:  22023 for a bad member or key; see hold_owner.
CREATE OR REPLACE FUNCTION truerank.assign_league_key(
    p_board text, p_member text, p_key text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer;
    v_member text;
BEGIN
    IF p_member IS NULL OR char_length(p_member) NOT BETWEEN 1 AND 200
       OR char_length(p_key) NOT BETWEEN 1 AND 100 THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'a member''s id has 1 to 200 characters, a key 1 to 100';
    END IF;
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    v_member := truerank.hold_owner(p_member);
    IF p_key IS NULL THEN
        DELETE FROM truerank.league_key AS k WHERE k.board_id = v_board_id AND k.member = v_member;
    ELSE
        INSERT INTO truerank.league_key AS k (board_id, member, key)
        VALUES (v_board_id, v_member, p_key)
        ON CONFLICT (board_id, member) DO UPDATE SET key = excluded.key
        WHERE k.key <> excluded.key;
    END IF;
    RETURN CASE WHEN FOUND THEN 'assigned' ELSE 'same' END;
END
$$;
