-- wait_for_ends: wait until nobody is left who takes members away, or merges them, and may not know
-- of a freeze.
--
-- In a transaction of its own, after the freeze has committed and before it is taken: whoever takes
-- members away later finds it, and tells it (see end_past). Who comes meanwhile waits as long.
-- Raises: 55P03 where a transaction that takes members away doesn't end within a moment.
CREATE OR REPLACE FUNCTION truerank.wait_for_ends() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
    SELECT pg_advisory_xact_lock(truerank.lock_class(), 258)
$$;
