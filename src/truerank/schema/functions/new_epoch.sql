-- new_epoch: say that the source went backwards since an epoch began, once per epoch.
--
-- Returns: the epoch now, which is another one already if someone else noticed first.
CREATE OR REPLACE FUNCTION truerank.new_epoch(p_epoch uuid, p_reason text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE truerank.setting AS s
    SET epoch = gen_random_uuid(), system_identifier = c.system_identifier
    FROM pg_control_system() AS c
    WHERE s.epoch = p_epoch;
    IF FOUND THEN
        INSERT INTO truerank.past_epoch (epoch, reason) VALUES (p_epoch, p_reason)
        ON CONFLICT DO NOTHING;
        DELETE FROM truerank.incarnation WHERE epoch = p_epoch;
        -- Copies of the new epoch begin at a tick of it, with the states of this source.
        DELETE FROM truerank.privacy;
        -- From another cluster a dump brought numbers of transactions that are yet to come here.
        DELETE FROM truerank.outbox AS o WHERE o.xid >= pg_snapshot_xmax(pg_current_snapshot());
        UPDATE truerank.erasure AS e SET began_xid = '0', known_from = NULL, swept_xid = NULL
        WHERE e.erased_at IS NULL;
        DELETE FROM truerank.erasure_group;
    END IF;
    RETURN (SELECT s.epoch FROM truerank.setting AS s);
END
$$;
