-- tell_freezes: let copies that are being made for freezes begin anew, for members go or are merged.
--
-- p_board_id 0: of all boards. A copy that begins later sees what has committed by then.
-- Locks:   one lock that freezes wait for (shared, see wait_for_ends); freezes that are to be.
CREATE OR REPLACE FUNCTION truerank.tell_freezes(p_board_id integer) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock_shared(truerank.lock_class(), 258);
    UPDATE truerank.freeze AS f SET ends = ends + 1
    WHERE f.id = ANY (ARRAY(
        SELECT x.id FROM truerank.freeze AS x
        WHERE x.dropped_at IS NULL AND x.frozen_at IS NULL
          AND (p_board_id = 0 OR x.board_id = p_board_id)
        ORDER BY x.id FOR UPDATE));
$$;
