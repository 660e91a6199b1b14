-- bans_ended: whether a ban of one of these members has ended and can be lifted.
CREATE OR REPLACE FUNCTION truerank.bans_ended(p_members text[]) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN current_setting('transaction_read_only') = 'off'
       AND EXISTS (SELECT FROM truerank.member_state AS s
                   WHERE s.member = ANY (p_members) AND s.until <= clock_timestamp()
                     AND s.state = 'banned');  -- it follows, but the index asks for it
END
$$;
