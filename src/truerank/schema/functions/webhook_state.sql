-- webhook_state: how deliveries are doing, for people; counted up to 10,000 of a receiver.
CREATE OR REPLACE FUNCTION truerank.webhook_state()
RETURNS TABLE (waiting bigint, parked bigint, oldest_age_ms bigint, disabled bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(sum(w.waiting), 0)::bigint, coalesce(sum(w.parked), 0)::bigint,
           (extract(epoch FROM clock_timestamp() - min(w.oldest_at)) * 1000)::bigint,
           count(*) FILTER (WHERE NOT w.enabled)
    FROM truerank.webhooks() AS w
$$;
