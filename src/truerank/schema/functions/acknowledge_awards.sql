-- acknowledge_awards: note that awards were dealt with: paid out, or taken back.
--
-- p_changes: the changes that were; an award that has changed since isn't, and comes again.
-- Repeat:  what is acknowledged stays as it was.
-- Returns: how many there are of these, acknowledged now or before.
CREATE OR REPLACE FUNCTION truerank.acknowledge_awards(p_changes bigint[], p_actor text)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM truerank.award AS a WHERE a.change = ANY (p_changes) ORDER BY a.change FOR UPDATE;
    UPDATE truerank.award AS a SET acknowledged_at = clock_timestamp(), acknowledged_by = p_actor
    WHERE a.change = ANY (p_changes) AND a.acknowledged_at IS NULL;
    RETURN (SELECT count(*) FROM truerank.award AS a WHERE a.change = ANY (p_changes));
END
$$;
