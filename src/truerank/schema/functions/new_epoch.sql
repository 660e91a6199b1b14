-- new_epoch: say that the source went backwards since an epoch began, once per epoch.
--
-- Returns: the epoch now, which is another one already if someone else noticed first.
CREATE OR REPLACE FUNCTION truerank.new_epoch(p_epoch uuid) RETURNS uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.setting SET epoch = gen_random_uuid() WHERE epoch = p_epoch;
    SELECT epoch FROM truerank.setting;
$$;
