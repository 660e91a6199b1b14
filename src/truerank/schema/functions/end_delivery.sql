-- end_delivery: note how an attempt to deliver ended.
--
-- p_outcome: a status of HTTP, or a word. p_pause_s: until the next attempt; null: none, it is
-- parked. p_webhook_pause_s: the receiver is left in peace for so long. p_disable: it wants no more.
-- What was delivered is, though another has the lease by now; a failure counts with its lease only.
-- Returns: delivered, failed, parked, or cancelled where it was given up meanwhile; busy where
--          somebody else's transaction has it, such as an erasure in a caller's own: note it later.
CREATE OR REPLACE FUNCTION truerank.end_delivery(
    p_id bigint, p_lease uuid, p_delivered boolean, p_outcome text, p_pause_s double precision,
    p_webhook_pause_s double precision, p_disable boolean
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    v_delivery truerank.webhook_delivery;
    v_parks boolean := NOT p_delivered AND p_pause_s IS NULL;
BEGIN
    -- First, as everybody does who changes both.
    PERFORM FROM truerank.webhook AS w
    WHERE w.id = (SELECT d.webhook FROM truerank.webhook_delivery AS d WHERE d.id = p_id)
    FOR NO KEY UPDATE;
    SELECT d.* INTO v_delivery FROM truerank.webhook_delivery AS d WHERE d.id = p_id FOR UPDATE;
    IF v_delivery.id IS NULL OR v_delivery.state IN ('delivered', 'cancelled')
       OR NOT p_delivered AND v_delivery.lease IS DISTINCT FROM p_lease THEN
        UPDATE truerank.webhook_delivery AS d SET lease = NULL, leased_until = NULL
        WHERE d.id = p_id AND d.lease = p_lease;
        RETURN coalesce(v_delivery.state, 'cancelled');
    END IF;
    UPDATE truerank.webhook_delivery AS d SET
        state = CASE WHEN p_delivered THEN 'delivered' WHEN v_parks THEN 'parked'
                     ELSE 'waiting' END,
        outcome = p_outcome, lease = NULL, leased_until = NULL,
        due_at = CASE WHEN p_delivered OR v_parks THEN d.due_at
                      ELSE clock_timestamp() + make_interval(secs => p_pause_s) END,
        -- Who is erased may be recognised by it.
        data = CASE WHEN p_delivered THEN d.data - 'member_hashes' ELSE d.data END,
        ended_at = CASE WHEN p_delivered THEN clock_timestamp() END
    WHERE d.id = p_id;
    IF p_delivered THEN
        UPDATE truerank.webhook AS w SET failures = 0, paused_until = '-infinity'
        WHERE w.id = v_delivery.webhook AND w.failures > 0;
    ELSE
        UPDATE truerank.webhook AS w SET
            failures = w.failures + 1, enabled = w.enabled AND NOT p_disable,
            disabled_for = CASE WHEN p_disable THEN p_outcome ELSE w.disabled_for END,
            paused_until = clock_timestamp() + make_interval(
                secs => p_webhook_pause_s * 2.0 ^ least(w.failures, 6))
        WHERE w.id = v_delivery.webhook;
    END IF;
    RETURN CASE WHEN p_delivered THEN 'delivered' WHEN v_parks THEN 'parked' ELSE 'failed' END;
EXCEPTION WHEN lock_not_available THEN
    RETURN 'busy';
END
$$;
