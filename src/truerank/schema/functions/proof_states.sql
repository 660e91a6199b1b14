-- proof_states: who isn't active in a group, in chunks, to compare a copy with.
--
-- In order of board (0: everywhere) and member; the last row of the chunk before continues it.
-- Returns: the version of each state, and its letter.
CREATE OR REPLACE FUNCTION truerank.proof_states(
    p_grp smallint, p_board_id integer, p_member text, p_rows_max integer
) RETURNS TABLE (board_id integer, member text, state bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.board_id, m.member,
           int8send(m.version) || convert_to(truerank.state_letter(m.state), 'UTF8')
    FROM truerank.member_state AS m
    WHERE (m.board_id, m.member) > (p_board_id, p_member)
      AND m.state IN ('hidden', 'banned', 'merged')
      AND (m.board_id = 0 OR m.board_id IN (SELECT b.id FROM truerank.board AS b
                                            WHERE b.grp = p_grp))
    ORDER BY m.board_id, m.member LIMIT p_rows_max
$$;
