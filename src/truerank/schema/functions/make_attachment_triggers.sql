-- make_attachment_triggers: see to it that a table and all its partitions have the triggers.
--
-- Statement triggers fire on the table that a statement names, so each partition has its own.
-- Returns: how many tables had none.
CREATE OR REPLACE FUNCTION truerank.make_attachment_triggers(p_attachment truerank.attachment)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_table regclass;
    v_kind text;
    v_made integer := 0;
BEGIN
    -- The table itself comes first: its lock keeps partitions from coming and going.
    FOR v_table IN SELECT * FROM truerank.attached_tables(p_attachment) LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_trigger AS t
            WHERE t.tgrelid = v_table
              AND t.tgname = format('truerank_%s_truncate', p_attachment.id));
        FOREACH v_kind IN ARRAY ARRAY['insert', 'update', 'delete'] LOOP
            EXECUTE format(
                'CREATE TRIGGER %I AFTER %s ON %s REFERENCING %s FOR EACH STATEMENT
                 EXECUTE FUNCTION truerank.attached_rows_changed(%L)',
                format('truerank_%s_%s', p_attachment.id, v_kind), v_kind, v_table,
                CASE v_kind WHEN 'insert' THEN 'NEW TABLE AS truerank_new'
                            WHEN 'delete' THEN 'OLD TABLE AS truerank_old'
                            ELSE 'OLD TABLE AS truerank_old NEW TABLE AS truerank_new' END,
                p_attachment.id);
        END LOOP;
        EXECUTE format(
            'CREATE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT
             EXECUTE FUNCTION truerank.attached_truncate_refused(%L)',
            format('truerank_%s_truncate', p_attachment.id), v_table, p_attachment.id);
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;
