-- compared_states: members of a group of whom something is withheld, after one of them, in order.
--
-- Returns: each with its states, as in compared_points.
CREATE OR REPLACE FUNCTION truerank.compared_states(
    p_grp smallint, p_member text, p_rows_max integer
) RETURNS TABLE (member text, states bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.member,
           string_agg(int4send(m.board_id) || int8send(m.version)
                      || convert_to(truerank.state_letter(m.state), 'UTF8'), ''
                      ORDER BY m.board_id)
    FROM truerank.member_state AS m
    WHERE m.state IN ('hidden', 'banned', 'merged') AND m.member > p_member
      AND (m.board_id = 0 OR EXISTS (SELECT FROM truerank.board AS b
                                     WHERE b.id = m.board_id AND b.grp = p_grp))
    GROUP BY m.member ORDER BY m.member LIMIT p_rows_max
$$;
