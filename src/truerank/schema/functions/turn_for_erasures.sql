-- turn_for_erasures: turn the ring where rows of the outbox still name somebody who is erased.
--
-- Call it in a transaction of its own; see turn_ring.
-- Returns: what turn_ring does; null where nothing names anybody.
CREATE OR REPLACE FUNCTION truerank.turn_for_erasures(p_dead_s integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_swept xid8;
BEGIN
    SELECT max(e.swept_xid) INTO v_swept FROM truerank.erasure AS e WHERE e.erased_at IS NULL;
    IF v_swept IS NULL
       OR NOT EXISTS (SELECT FROM truerank.outbox AS o WHERE o.xid <= v_swept) THEN
        RETURN NULL;
    END IF;
    RETURN truerank.turn_ring(0, 0, p_dead_s, true);
END
$$;
