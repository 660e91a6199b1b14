-- free_revision: a number for the next revision of an attached row's event, whose id is free.
--
-- The next one or the one after it, as nearly always. Somebody may have submitted events under ids that look like
-- revisions: then a number that nobody can guess, so that no row can be kept from being corrected.
-- Returns: null after eight tries in vain.
CREATE OR REPLACE FUNCTION truerank.free_revision(p_board_id integer, p_event_id text, p_last integer)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer := p_last + 1;
BEGIN
    FOR v_try IN 1..8 LOOP
        PERFORM FROM truerank.event AS e
        WHERE e.board_id = p_board_id
          AND e.event_uuid = truerank.event_uuid(truerank.attached_id(p_event_id, v_next));
        IF NOT FOUND THEN
            RETURN v_next;
        END IF;
        v_next := CASE WHEN v_try = 1 THEN p_last + 2 ELSE
            least(p_last + 3 + floor(random() * 1000000)::bigint, 2147483647) END;
    END LOOP;
    RETURN NULL;
END
$$;
