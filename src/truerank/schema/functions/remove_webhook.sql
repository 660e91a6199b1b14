-- remove_webhook: tell a receiver of nothing any more, and forget what is on its way to it.
--
-- Returns: removed, webhook_unknown.
CREATE OR REPLACE FUNCTION truerank.remove_webhook(p_name text, p_actor text, p_reason text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_webhook truerank.webhook;
BEGIN
    DELETE FROM truerank.webhook AS w WHERE w.name = p_name RETURNING w.* INTO v_webhook;
    IF v_webhook.id IS NULL THEN
        RETURN 'webhook_unknown';
    END IF;
    -- The rest, and what transactions under way add still, is swept by workers.
    PERFORM truerank.forget_deliveries(v_webhook.id, 10000);
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_webhook.board_id, p_actor, 'remove_webhook', p_name, p_reason);
    RETURN 'removed';
END
$$;
