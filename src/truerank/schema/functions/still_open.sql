-- still_open: whether a transaction of this server hasn't ended yet, or never began.
--
-- p_incarnation is that of the token that names it: of another one the number says nothing here,
-- and the answer is false. One that was rolled back has ended.
CREATE OR REPLACE FUNCTION truerank.still_open(p_xid xid8, p_incarnation text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN pg_is_in_recovery() OR p_incarnation <> truerank.incarnation() THEN false
                ELSE NOT pg_visible_in_snapshot(p_xid, pg_current_snapshot()) END
$$;
