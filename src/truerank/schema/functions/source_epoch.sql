-- source_epoch: the epoch of this source, as far as a worker has noticed.
CREATE OR REPLACE FUNCTION truerank.source_epoch() RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.epoch FROM truerank.setting AS s
$$;
