-- restart_backfill: let the backfill of an attached table begin anew; what it finds again adds
-- nothing. For rows that came while triggers were disabled, or with a partition.
CREATE OR REPLACE FUNCTION truerank.restart_backfill(p_attachment integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE truerank.attachment AS a SET
        backfill_after = NULL, backfill_rows = 0, backfill_applied = 0, backfill_duplicate = 0,
        backfill_parked = 0, backfill_done_at = NULL
    WHERE a.id = p_attachment AND a.detached_at IS NULL;
    RETURN FOUND;
END
$$;
