-- leave_epoch: go on with this server on purpose, though a copy was fed by one promoted later.
--
-- For whoever has restored an older state: the copies of that epoch are hidden and filled anew from
-- here. The other server must be stopped for good.
-- Returns: the epoch now; a new one where it was the present one that is left.
CREATE OR REPLACE FUNCTION truerank.leave_epoch(p_epoch uuid, p_reason text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO truerank.past_epoch (epoch, reason) VALUES (p_epoch, p_reason)
    ON CONFLICT DO NOTHING;
    RETURN truerank.new_epoch(p_epoch, p_reason);
END
$$;
