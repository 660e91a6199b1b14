-- sweep_deliveries: forget a slice of the deliveries that ended long ago, and of receivers no more.
--
-- Also secrets that are signed with no longer. Parked ones stay until somebody deals with them. What
-- is due in more than a day, which no schedule says, is due now: the server's clock was set back.
-- Nobody is waited for.
-- Returns: how many deliveries went.
CREATE OR REPLACE FUNCTION truerank.sweep_deliveries(p_keep_s integer, p_limit integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Once, so that indexes lead to the rows: the clock itself may differ from row to row.
    v_now timestamptz := clock_timestamp();
    v_kept_from timestamptz := v_now - make_interval(secs => p_keep_s);
    v_far timestamptz := v_now + interval '1 day';
    v_receivers integer[];
    v_gone bigint;
    v_orphans bigint := 0;
BEGIN
    UPDATE truerank.webhook AS w SET
        former_secret = CASE WHEN w.former_until > v_now THEN w.former_secret END,
        former_until = CASE WHEN w.former_until > v_now THEN w.former_until END,
        paused_until = CASE WHEN w.paused_until > v_far THEN '-infinity' ELSE w.paused_until END
    WHERE w.id IN (SELECT x.id FROM truerank.webhook AS x
                   WHERE x.former_until <= v_now OR x.paused_until > v_far
                   FOR NO KEY UPDATE SKIP LOCKED);
    DELETE FROM truerank.webhook_delivery AS d WHERE d.id IN (
        SELECT x.id FROM truerank.webhook_delivery AS x
        WHERE x.state IN ('delivered', 'cancelled') AND x.ended_at < v_kept_from
        LIMIT p_limit FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_gone = ROW_COUNT;

    -- From one receiver's first row to the next one's, however many each has.
    WITH RECURSIVE waits (webhook) AS (
        SELECT min(d.webhook) FROM truerank.webhook_delivery AS d WHERE d.state = 'waiting'
        UNION ALL
        SELECT (SELECT min(d.webhook) FROM truerank.webhook_delivery AS d
                WHERE d.state = 'waiting' AND d.webhook > w.webhook)
        FROM waits AS w WHERE w.webhook IS NOT NULL
    ), parked (webhook) AS (
        SELECT min(d.webhook) FROM truerank.webhook_delivery AS d WHERE d.state = 'parked'
        UNION ALL
        SELECT (SELECT min(d.webhook) FROM truerank.webhook_delivery AS d
                WHERE d.state = 'parked' AND d.webhook > p.webhook)
        FROM parked AS p WHERE p.webhook IS NOT NULL
    )
    SELECT array_agg(f.webhook) INTO v_receivers
    FROM (SELECT w.webhook FROM waits AS w UNION SELECT p.webhook FROM parked AS p) AS f
    WHERE f.webhook IS NOT NULL;
    FOR v_at IN 1 .. coalesce(cardinality(v_receivers), 0) LOOP
        IF EXISTS (SELECT FROM truerank.webhook AS w WHERE w.id = v_receivers[v_at]) THEN
            UPDATE truerank.webhook_delivery AS d SET
                due_at = v_now, lease = NULL, leased_until = NULL
            WHERE d.id IN (
                SELECT x.id FROM truerank.webhook_delivery AS x
                WHERE x.webhook = v_receivers[v_at] AND x.state = 'waiting' AND x.due_at > v_far
                LIMIT p_limit FOR UPDATE SKIP LOCKED);
        ELSE
            v_orphans := truerank.forget_deliveries(v_receivers[v_at], p_limit) + v_orphans;
        END IF;
    END LOOP;
    RETURN v_gone + v_orphans;
END
$$;
