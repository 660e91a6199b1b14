-- detach_table: end an attachment: its triggers go, its events and what was parked stay.
--
-- Where a table is another role's, its triggers stay too, and do nothing any more.
-- Returns: detached, attachment_unknown, or triggers_left.
-- Raises:  55P03 where writers of the table are under way for a second.
CREATE OR REPLACE FUNCTION truerank.detach_table(p_attachment integer, p_actor text, p_reason text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    v_attachment truerank.attachment;
    v_trigger record;
    v_outcome text := 'detached';
BEGIN
    SELECT a.* INTO v_attachment FROM truerank.attachment AS a
    WHERE a.id = p_attachment AND a.detached_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'attachment_unknown';
    END IF;
    FOR v_trigger IN
        SELECT t.tgname AS name, t.tgrelid::regclass AS relation FROM pg_trigger AS t
        WHERE t.tgfoid IN ('truerank.attached_rows_changed'::regproc,
                           'truerank.attached_truncate_refused'::regproc)
          AND t.tgname ~ format('^truerank_%s_', p_attachment)
        ORDER BY t.tgrelid <> v_attachment.relation, t.tgrelid, t.tgname
    LOOP
        BEGIN
            EXECUTE format('DROP TRIGGER %I ON %s', v_trigger.name, v_trigger.relation);
        EXCEPTION WHEN insufficient_privilege THEN
            v_outcome := 'triggers_left';
        END;
    END LOOP;
    UPDATE truerank.attachment SET detached_at = clock_timestamp() WHERE id = p_attachment;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
    VALUES (v_attachment.board_id, p_actor, 'detach', v_attachment.source, p_reason);
    RETURN v_outcome;
END
$$;
