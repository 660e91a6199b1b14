-- unread_in: whether a segment of the outbox has rows that a snapshot doesn't show.
--
-- p_newest is the newest transaction that wrote there. Of a segment that is all before the
-- snapshot, as usual, not a row is read.
CREATE OR REPLACE FUNCTION truerank.unread_in(
    p_outbox regclass, p_newest xid8, p_snapshot pg_snapshot
) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_unread boolean := false;
BEGIN
    IF p_newest >= pg_snapshot_xmin(p_snapshot) THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %s AS o
                        WHERE o.xid >= pg_snapshot_xmin($1)
                          AND NOT pg_visible_in_snapshot(o.xid, $1))', p_outbox)
        INTO v_unread USING p_snapshot;
    END IF;
    RETURN v_unread;
END
$$;
