-- dismiss_parked: close a parked row without taking it in, with who and why.
--
-- Returns: dismissed, parked_unknown, or what became of it before.
CREATE OR REPLACE FUNCTION truerank.dismiss_parked(p_id bigint, p_actor text, p_reason text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_done text;
BEGIN
    UPDATE truerank.parked AS p SET done = 'dismissed', done_at = clock_timestamp()
    WHERE p.id = p_id AND p.done IS NULL;
    IF FOUND THEN
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
        SELECT a.board_id, p_actor, 'dismiss_parked', coalesce(p.event_id, ''), p_reason
        FROM truerank.parked AS p JOIN truerank.attachment AS a ON a.id = p.attachment_id
        WHERE p.id = p_id;
        RETURN 'dismissed';
    END IF;
    SELECT p.done INTO v_done FROM truerank.parked AS p WHERE p.id = p_id;
    RETURN coalesce(v_done, 'parked_unknown');
END
$$;
