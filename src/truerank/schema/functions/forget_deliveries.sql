-- forget_deliveries: forget a slice of what waits or is parked for a receiver that is no more.
--
-- What another transaction has is left for the next time: nobody is waited for.
-- Returns: how many deliveries went.
CREATE OR REPLACE FUNCTION truerank.forget_deliveries(p_webhook integer, p_limit integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_waiting bigint;
    v_parked bigint;
BEGIN
    DELETE FROM truerank.webhook_delivery AS d WHERE d.id IN (
        SELECT x.id FROM truerank.webhook_delivery AS x
        WHERE x.webhook = p_webhook AND x.state = 'waiting'
        LIMIT p_limit FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_waiting = ROW_COUNT;
    DELETE FROM truerank.webhook_delivery AS d WHERE d.id IN (
        SELECT x.id FROM truerank.webhook_delivery AS x
        WHERE x.webhook = p_webhook AND x.state = 'parked'
        LIMIT p_limit FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_parked = ROW_COUNT;
    RETURN v_waiting + v_parked;
END
$$;
