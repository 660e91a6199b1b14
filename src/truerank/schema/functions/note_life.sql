-- note_life: note that a cursor was verified in the present life of the server.
--
-- p_known: the snapshot of the cursor. What it shows is in the history of this life, and so known
-- of the life before, where that is on another timeline.
-- Returns: see lives.
CREATE OR REPLACE FUNCTION truerank.note_life(p_known pg_snapshot) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id text := truerank.incarnation();
    v_epoch uuid := (SELECT s.epoch FROM truerank.setting AS s);
BEGIN
    INSERT INTO truerank.incarnation (epoch, id) VALUES (v_epoch, v_id) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        UPDATE truerank.incarnation AS i SET known_to = pg_snapshot_xmax(p_known)
        WHERE i.epoch = v_epoch AND i.id <> v_id AND i.known_to IS NULL;
    END IF;
    RETURN truerank.lives();
END
$$;
