-- drop_generations: forget copies that are gone from Redis, and others that went long ago.
--
-- For a day they stay listed as retired: a failover to a replica that lags, or a restored snapshot,
-- may bring back what Redis held before, and whoever adopts the group removes it again.
CREATE OR REPLACE FUNCTION truerank.drop_generations(p_ids uuid[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation SET state = 'retired', seen_at = clock_timestamp()
    WHERE id = ANY (p_ids) AND state <> 'retired';
    DELETE FROM truerank.generation
    WHERE state = 'retired' AND seen_at < clock_timestamp() - interval '1 day'
$$;
