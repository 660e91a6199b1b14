-- current_epoch: the epoch of this source, a new one if the database was copied elsewhere.
--
-- A dump or a logical copy carries tick rows into another transaction-id space, where their
-- snapshots mean nothing; the system identifier tells.
CREATE OR REPLACE FUNCTION truerank.current_epoch() RETURNS uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT truerank.new_epoch(s.epoch, 'the database was copied to another cluster')
    FROM truerank.setting AS s, pg_control_system() AS c
    WHERE s.system_identifier <> c.system_identifier;
    SELECT epoch FROM truerank.setting;
$$;
