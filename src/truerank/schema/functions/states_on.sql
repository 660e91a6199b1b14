-- states_on: what is withheld of members on a board: hidden, banned or merged; else active.
--
-- Returns: one state for each member, in the given order.
CREATE OR REPLACE FUNCTION truerank.states_on(p_board_id integer, p_members text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce((SELECT w FROM truerank.withheld_as(p_board_id, u.member) AS w), 'active')
        FROM unnest(p_members) WITH ORDINALITY AS u (member, ord) ORDER BY u.ord);
END
$$;
