-- backfill_attached: take in the next rows that were in a table before it was attached.
--
-- In a transaction of its own, again and again until done; what is committed is remembered, and
-- rows that came through the trigger are duplicates. Rows are locked against changes while they are
-- taken in, so that a change comes before or after. What the board refuses is parked, also where
-- the attachment says raise. Rows without an event id are passed over.
-- Locks:   gives up after half a second, before anybody's deadlock_timeout (one second): who is in
--          the way goes first.
-- Returns: rows looked at (the condition may keep some out), counts, whether that was the end;
--          attached false where there is no such attachment.
-- Raises:  55P03 or 40001: again, with fewer rows.
CREATE OR REPLACE FUNCTION truerank.backfill_attached(
    p_attachment integer, p_rows_max integer, p_actor text,
    OUT attached boolean, OUT rows bigint, OUT applied bigint, OUT duplicate bigint,
    OUT parked bigint, OUT done boolean
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' SET row_security = off
AS $$
DECLARE
    v_attachment truerank.attachment;
    v_query record;
    v_after text;
    v_until text;
    v_fact truerank.attached_fact[];
BEGIN
    SELECT a.* INTO v_attachment FROM truerank.attachment AS a
    WHERE a.id = p_attachment AND a.detached_at IS NULL FOR UPDATE;
    attached := FOUND;
    IF NOT attached THEN
        RETURN;
    END IF;
    v_attachment.on_refusal := 'park';
    v_query := truerank.attached_query(v_attachment, v_attachment.relation, NULL);
    -- Compared as the column's own type: in the order of its index.
    SELECT CASE WHEN v_attachment.backfill_after IS NULL THEN 'true' ELSE format(
        '%s > %L::%s', v_query.id, v_attachment.backfill_after,
        format_type(t.atttypid, -1)) END
    INTO v_after FROM pg_attribute AS t
    WHERE t.attrelid = v_attachment.relation AND t.attname = v_attachment.event_id;

    -- The end of the slice first: under FOR SHARE a row may come back with another id.
    EXECUTE format(
        'SELECT s.id::text, s.n FROM (
             SELECT %1$s AS id, row_number() OVER (ORDER BY %1$s) AS n FROM %2$s
             WHERE %3$s AND %1$s IS NOT NULL ORDER BY %1$s LIMIT %4$s) AS s
         ORDER BY s.n DESC LIMIT 1',
        v_query.id, v_attachment.relation, v_after, p_rows_max) INTO v_until, rows;
    rows := coalesce(rows, 0);
    done := rows < p_rows_max;
    IF rows > 0 THEN
        EXECUTE format(
            'SELECT array_agg(s.fact) FROM (
                 SELECT %1$s AS fact %2$s AND %3$s AND %4$s <= %5$L::%6$s
                 ORDER BY %4$s FOR SHARE) AS s',
            v_query.fact, v_query.source, v_after, v_query.id, v_until,
            (SELECT format_type(t.atttypid, -1) FROM pg_attribute AS t
             WHERE t.attrelid = v_attachment.relation AND t.attname = v_attachment.event_id))
        INTO v_fact;
    END IF;
    SELECT t.applied, t.duplicate, t.parked INTO applied, duplicate, parked
    FROM truerank.take_attached(v_attachment, NULL, v_fact, p_actor, 'backfill') AS t;
    UPDATE truerank.attachment AS a SET
        backfill_after = coalesce(v_until, a.backfill_after),
        backfill_rows = a.backfill_rows + backfill_attached.rows,
        backfill_applied = a.backfill_applied + backfill_attached.applied,
        backfill_duplicate = a.backfill_duplicate + backfill_attached.duplicate,
        backfill_parked = a.backfill_parked + backfill_attached.parked,
        backfill_done_at = CASE WHEN done THEN clock_timestamp() END
    WHERE a.id = p_attachment;
END
$$;
