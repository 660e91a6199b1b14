-- retry_standings: have parked rankings tried again at the next heartbeat; null: all of them.
--
-- Returns: how many.
CREATE OR REPLACE FUNCTION truerank.retry_standings(p_ranking bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH due AS (
        UPDATE truerank.parked_standing SET retry_at = clock_timestamp()
        WHERE p_ranking IS NULL OR ranking = p_ranking
        RETURNING ranking
    )
    SELECT count(*) FROM due
$$;
