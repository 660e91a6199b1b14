-- withheld_as: what a member is withheld as on a board: merged, banned or hidden; no row: it isn't.
--
-- The strictest of its states everywhere and on the board. Inlined where it stands in a FROM.
CREATE OR REPLACE FUNCTION truerank.withheld_as(p_board_id integer, p_member text)
RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT s.state FROM truerank.member_state AS s
    WHERE s.member = p_member AND s.board_id IN (0, p_board_id)
      AND s.state IN ('hidden', 'banned', 'merged')
    ORDER BY array_position(ARRAY['merged', 'banned', 'hidden'], s.state) LIMIT 1
$$;
