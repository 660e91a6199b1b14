-- has_left: whether a member was deleted on a board when, or after, events of an id of it ended.
--
-- Else it was only reset, and what it was before is no secret.
CREATE OR REPLACE FUNCTION truerank.has_left(
    p_board_id integer, p_name text, p_ended_at timestamptz
) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM truerank.audit AS a
                   WHERE a.action = 'delete_member' AND a.at >= p_ended_at
                     AND (a.board_id IS NULL OR a.board_id = p_board_id)
                     AND a.subject = ANY (truerank.names_of(truerank.owner_of(p_name))))
$$;
