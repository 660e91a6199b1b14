-- attached_rows_changed: the trigger of an attached table; one call to the board a statement.
--
-- It runs with the rights of its owner: who writes the table needs none here. What it does commits
-- or rolls back with the statement.
-- Raises:  TR002 for what the attachment refuses, or does not park; 40001 where the table was
--          attached after the caller's snapshot was taken.
CREATE OR REPLACE FUNCTION truerank.attached_rows_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_attachment truerank.attachment;
    v_went truerank.attached_fact[];
    v_came truerank.attached_fact[];
BEGIN
    SELECT a.* INTO v_attachment FROM truerank.attachment AS a WHERE a.id = TG_ARGV[0]::integer;
    IF NOT FOUND THEN
        RAISE serialization_failure USING MESSAGE =
            'the table was attached to a board after this transaction began; retry';
    ELSIF v_attachment.detached_at IS NOT NULL
       OR TG_OP = 'DELETE' AND v_attachment.on_delete = 'ignore' THEN
        RETURN NULL;
    END IF;

    BEGIN
        -- Here, for no other function sees the transition tables.
        EXECUTE truerank.attached_changes(v_attachment, TG_OP, TG_RELID) INTO v_went, v_came;
    EXCEPTION WHEN OTHERS THEN
        -- What is wrong with the server or with other transactions is not about these rows.
        IF v_attachment.on_refusal = 'raise' OR SQLSTATE ~ '^(40|53|55|57|58|XX)' THEN
            RAISE;
        END IF;
        DECLARE
            v_message text := SQLERRM;
            v_ids text[];
        BEGIN
            IF (truerank.attached_column(TG_RELID, v_attachment.event_id, 'event_id', NULL)).code
               IS NULL THEN
                EXECUTE format('SELECT array_agg(%L || t.%I::text) FROM %I AS t',
                               v_attachment.prefix, v_attachment.event_id,
                               CASE TG_OP WHEN 'DELETE' THEN 'truerank_old'
                                          ELSE 'truerank_new' END) INTO v_ids;
            END IF;
            PERFORM truerank.attached_broken(v_attachment, TG_OP, v_message, v_ids);
        END;
        RETURN NULL;
    END;

    IF cardinality(v_went) > 0
       AND 'refuse' = (CASE TG_OP WHEN 'DELETE' THEN v_attachment.on_delete
                                  ELSE v_attachment.on_update END) THEN
        RAISE EXCEPTION USING ERRCODE = 'TR002', DETAIL = lower(TG_OP) || '_refused',
            MESSAGE = format('%s_refused: %s is attached to a board, and event %L stands on this '
                             'row', lower(TG_OP), v_attachment.relation, v_went[1].event_id);
    ELSIF TG_OP = 'UPDATE' AND v_attachment.on_update = 'ignore' THEN
        v_went := NULL;
    END IF;
    IF cardinality(v_went) > 0 OR cardinality(v_came) > 0 THEN
        PERFORM truerank.take_attached(
            v_attachment, v_went, v_came,
            left(coalesce(nullif(current_setting('truerank.actor', true), ''), session_user), 1000),
            'attached table');
    END IF;
    RETURN NULL;
END
$$;
