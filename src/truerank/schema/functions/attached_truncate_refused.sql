-- attached_truncate_refused: the trigger that keeps an attached table from being truncated: its
-- rows would go, and their events stay.
CREATE OR REPLACE FUNCTION truerank.attached_truncate_refused() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM truerank.attachment AS a
               WHERE a.id = TG_ARGV[0]::integer AND a.detached_at IS NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'TR002', DETAIL = 'truncate_refused',
            MESSAGE = format('truncate_refused: %s is attached to a board',
                             TG_RELID::regclass),
            HINT = 'Detach it first, or delete its rows.';
    END IF;
    RETURN NULL;
END
$$;
