-- retry_deliveries: send again what was parked, and what waits for its next attempt, at once.
--
-- p_ids null: all of the receiver. Attempts are counted anew. What was delivered stays so; what
-- wasn't tried yet is due anyway, and doesn't count. At most 10,000 at a time: call again while it
-- is that many.
-- Returns: one row: retried, with how many; webhook_unknown.
CREATE OR REPLACE FUNCTION truerank.retry_deliveries(
    p_name text, p_ids bigint[], p_actor text, p_reason text
) RETURNS TABLE (outcome text, retried bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_webhook truerank.webhook;
BEGIN
    UPDATE truerank.webhook AS w SET failures = 0, paused_until = '-infinity'
    WHERE w.name = p_name RETURNING w.* INTO v_webhook;
    IF v_webhook.id IS NULL THEN
        outcome := 'webhook_unknown';
        RETURN NEXT;
        RETURN;
    END IF;
    UPDATE truerank.webhook_delivery AS d SET
        state = 'waiting', attempts = 0, due_at = clock_timestamp()
    WHERE d.id IN (
        SELECT x.id FROM truerank.webhook_delivery AS x
        WHERE x.webhook = v_webhook.id AND x.lease IS NULL
          AND (x.state = 'parked' OR x.state = 'waiting' AND x.attempts > 0)
          AND (p_ids IS NULL OR x.id = ANY (p_ids))
        ORDER BY x.id LIMIT 10000 FOR UPDATE);
    GET DIAGNOSTICS retried = ROW_COUNT;
    IF retried > 0 THEN
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_webhook.board_id, p_actor, 'retry_deliveries', p_name, p_reason,
                jsonb_build_object('retried', retried));
    END IF;
    outcome := 'retried';
    RETURN NEXT;
END
$$;
