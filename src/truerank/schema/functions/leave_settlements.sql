-- leave_settlements: let a deleted member's id no longer be shown in what was settled before.
--
-- Its places stay, and everybody else's. p_board_id 0: on all boards.
CREATE OR REPLACE FUNCTION truerank.leave_settlements(p_member text, p_board_id integer)
RETURNS void
LANGUAGE sql AS $$
    UPDATE truerank.settlement_row AS r SET left_at = clock_timestamp()
    FROM truerank.settlement AS s
    WHERE (p_board_id = 0 OR s.ranking >> 36 = p_board_id)
      AND r.ranking = s.ranking AND r.revision = s.revision
      AND r.member = ANY (truerank.names_of(p_member)) AND r.left_at IS NULL
$$;
