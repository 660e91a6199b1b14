-- retry_parked: try a parked row again, with another member, value or time where given.
--
-- Returns: taken; or the code for which it stays parked; parked_unknown; or what became of it
--          before: taken, superseded, dismissed.
CREATE OR REPLACE FUNCTION truerank.retry_parked(
    p_id bigint, p_member text, p_value numeric, p_occurred_at timestamptz, p_actor text,
    p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_attachment truerank.attachment;
    v_parked truerank.parked;
    v_fact truerank.attached_fact;
BEGIN
    SELECT p.* INTO v_parked FROM truerank.parked AS p WHERE p.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'parked_unknown';
    ELSIF v_parked.done IS NOT NULL THEN
        RETURN v_parked.done;
    ELSIF v_parked.event_uuid IS NULL THEN
        RETURN v_parked.code;
    END IF;
    SELECT a.* INTO v_attachment FROM truerank.attachment AS a WHERE a.id = v_parked.attachment_id;
    v_attachment.on_refusal := 'park';
    v_fact := (v_parked.event_id, coalesce(p_member, v_parked.member),
               coalesce(p_value, v_parked.value), coalesce(p_occurred_at, v_parked.occurred_at),
               v_parked.ties);
    IF num_nonnulls(p_member, p_value, p_occurred_at) > 0 THEN
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_attachment.board_id, p_actor, 'mend_parked', v_parked.event_id, p_reason,
                jsonb_strip_nulls(jsonb_build_object(
                    'member', p_member, 'value', p_value::text, 'occurred_at', p_occurred_at)));
    END IF;
    PERFORM truerank.take_attached(
        v_attachment, CASE WHEN v_parked.action <> 'submit' THEN ARRAY[v_fact] END,
        CASE WHEN v_parked.action <> 'void' THEN ARRAY[v_fact] END, p_actor, p_reason);
    UPDATE truerank.parked AS p SET done = 'taken'
    WHERE p.id = p_id AND p.done = 'superseded';
    RETURN (SELECT coalesce(p.done, p.code) FROM truerank.parked AS p WHERE p.id = p_id);
END
$$;
