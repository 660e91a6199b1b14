-- test_webhook: let a receiver be told at once that somebody tests it, whatever else it is told of.
--
-- It is sent before all that waits: who tests one that fails would wait for its backlog.
-- Returns: the delivery; null where there is no such receiver.
CREATE OR REPLACE FUNCTION truerank.test_webhook(p_name text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.webhook AS w SET paused_until = '-infinity' WHERE w.name = p_name;
    INSERT INTO truerank.webhook_delivery (webhook, kind, data, due_at)
    SELECT w.id, 'webhook.test', jsonb_build_object('webhook', w.name),
           w.made_at - interval '1 day'
    FROM truerank.webhook AS w WHERE w.name = p_name
    RETURNING id
$$;
