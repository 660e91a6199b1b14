-- seasons_filling: how far the seasons of periods that were added to a board are computed.
--
-- Returns: no row where no board has this key. periods: those that aren't all there, none where
--          nothing is to do. members_done: who was looked at so far; members: how many had events
--          when truerank.count_filling counted them, null where nobody has asked.
CREATE OR REPLACE FUNCTION truerank.seasons_filling(p_board text)
RETURNS TABLE (periods text[], members_done bigint, members bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.filling, b.filled_members, b.filling_members FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL
$$;
