-- states_on: what is withheld of members on a board: hidden, banned or merged; else active.
--
-- The stricter of the states everywhere and on the board: merged, then banned, then hidden.
-- Returns: one state for each member, in the given order.
CREATE OR REPLACE FUNCTION truerank.states_on(p_board_id integer, p_members text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce((
            SELECT s.state FROM truerank.member_state AS s
            WHERE s.member = u.member AND s.board_id IN (0, p_board_id)
              AND s.state IN ('hidden', 'banned', 'merged')
            ORDER BY array_position(ARRAY['merged', 'banned', 'hidden'], s.state) LIMIT 1
        ), 'active')
        FROM unnest(p_members) WITH ORDINALITY AS u (member, ord) ORDER BY u.ord);
END
$$;
