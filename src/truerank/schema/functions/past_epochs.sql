-- past_epochs: those of some epochs that this source has left behind.
CREATE OR REPLACE FUNCTION truerank.past_epochs(p_epochs uuid[]) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.epoch FROM truerank.past_epoch AS p WHERE p.epoch = ANY (p_epochs)
$$;
