-- claim_deliveries: take deliveries that are due, to send them; nobody else does until then.
--
-- A receiver is sent p_at_once requests at a time, by all workers together, and one that failed
-- last time only one. What it takes to send is returned. Who is killed leaves its deliveries to
-- whoever comes after p_lease_s seconds.
CREATE OR REPLACE FUNCTION truerank.claim_deliveries(
    p_lease uuid, p_lease_s double precision, p_at_once integer
) RETURNS TABLE (id bigint, key uuid, webhook integer, url text, secrets bytea[], kind text,
                 member text, data jsonb, occurred_at timestamptz, attempts integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_webhook truerank.webhook;
    v_free bigint;
    -- Once, so that an index leads to what is due: the clock itself may differ from row to row.
    v_now timestamptz := clock_timestamp();
BEGIN
    FOR v_webhook IN
        SELECT w.* FROM truerank.webhook AS w
        WHERE w.enabled AND w.paused_until <= v_now
          AND EXISTS (SELECT FROM truerank.webhook_delivery AS d
                      WHERE d.webhook = w.id AND d.state = 'waiting' AND d.due_at <= v_now)
        ORDER BY w.id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        v_free := CASE WHEN v_webhook.failures > 0 THEN 1 ELSE p_at_once END
            - (SELECT count(*) FROM truerank.webhook_delivery AS d
               WHERE d.webhook = v_webhook.id AND d.lease IS NOT NULL
                 AND d.leased_until > clock_timestamp());
        CONTINUE WHEN v_free <= 0;
        RETURN QUERY
        UPDATE truerank.webhook_delivery AS d SET
            attempts = d.attempts + 1, attempted_at = clock_timestamp(), lease = p_lease,
            leased_until = clock_timestamp() + make_interval(secs => p_lease_s),
            due_at = clock_timestamp() + make_interval(secs => p_lease_s)
        WHERE d.id IN (
            SELECT x.id FROM truerank.webhook_delivery AS x
            WHERE x.webhook = v_webhook.id AND x.state = 'waiting' AND x.due_at <= v_now
            ORDER BY x.due_at LIMIT v_free FOR UPDATE SKIP LOCKED)
        RETURNING d.id, d.key, v_webhook.id, v_webhook.url,
            CASE WHEN v_webhook.former_until > clock_timestamp()
                 THEN ARRAY[v_webhook.secret, v_webhook.former_secret]
                 ELSE ARRAY[v_webhook.secret] END,
            d.kind, d.member, d.data, d.occurred_at, d.attempts;
    END LOOP;
END
$$;
