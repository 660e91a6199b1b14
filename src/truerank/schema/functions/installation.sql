-- installation: which installation this is, and whether it takes writes; asked before all else.
CREATE OR REPLACE FUNCTION truerank.installation()
RETURNS TABLE (id uuid, epoch uuid, groups integer, read_only boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.installation, s.epoch, s.groups::integer,
           pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean
    FROM truerank.setting AS s
$$;
