-- webhooks: the receivers, by name, and how many deliveries each has; without any secret.
--
-- Waiting and parked ones are counted up to 10,000.
CREATE OR REPLACE FUNCTION truerank.webhooks(p_name text DEFAULT NULL)
RETURNS TABLE (name text, url text, kinds text[], board text, enabled boolean, disabled_for text,
               former_until timestamptz, failures integer, paused_until timestamptz,
               made_at timestamptz, waiting bigint, parked bigint, oldest_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.name, w.url, w.kinds, b.key, w.enabled, w.disabled_for,
           CASE WHEN w.former_until > clock_timestamp() THEN w.former_until END, w.failures,
           CASE WHEN w.paused_until > clock_timestamp() THEN w.paused_until END, w.made_at,
           n.waiting, p.parked, n.oldest_at
    FROM truerank.webhook AS w
    LEFT JOIN truerank.board AS b ON b.id = w.board_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS waiting, min(d.occurred_at) AS oldest_at FROM (
            SELECT x.occurred_at FROM truerank.webhook_delivery AS x
            WHERE x.webhook = w.id AND x.state = 'waiting' LIMIT 10000) AS d) AS n
    CROSS JOIN LATERAL (
        SELECT count(*) AS parked FROM (
            SELECT FROM truerank.webhook_delivery AS x
            WHERE x.webhook = w.id AND x.state = 'parked' LIMIT 10000) AS d) AS p
    WHERE p_name IS NULL OR w.name = p_name
    ORDER BY w.name
$$;
