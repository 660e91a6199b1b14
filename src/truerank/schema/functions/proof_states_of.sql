-- proof_states_of: the state of single members on boards (0: everywhere), as proof_states has it.
--
-- Returns: one row per pair, in the given order; null: active.
CREATE OR REPLACE FUNCTION truerank.proof_states_of(p_board_ids integer[], p_members text[])
RETURNS TABLE (state bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT int8send(m.version) || convert_to(truerank.state_letter(m.state), 'UTF8')
    FROM unnest(p_board_ids, p_members) WITH ORDINALITY AS u (board_id, member, n)
    LEFT JOIN truerank.member_state AS m
      ON m.board_id = u.board_id AND m.member = u.member
     AND m.state IN ('hidden', 'banned', 'merged')
    ORDER BY u.n
$$;
