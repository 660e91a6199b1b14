-- attach_table: make the rows of a table the events of a board, from this transaction on.
--
-- p_table is written as in SQL (public where it names no schema), columns and prefix exactly.
-- p_value_fixed stands for a column of values. p_zone is that of a p_occurred_at without one.
-- p_condition is SQL on the columns of one row; functions of other schemas than pg_catalog need
-- their schema's name. Run by the owner of this schema, who may read, update and put triggers on
-- the table; whoever owns the table is trusted.
-- Locks:   the table against writers, until the transaction ends: it waits for those under way.
-- Returns: attached; existing (the same again; new partitions got their triggers); or the code of
--          a refusal, with its field and message. warnings hold codes too.
-- Raises:  55P03 where writers are under way for a second.
CREATE OR REPLACE FUNCTION truerank.attach_table(
    p_board text, p_table text, p_event_id name, p_member name, p_value name,
    p_value_fixed numeric, p_occurred_at name, p_zone text, p_ties name[], p_condition text,
    p_prefix text, p_on_update text, p_on_delete text, p_on_refusal text, p_actor text,
    p_reason text,
    OUT attachment integer, OUT outcome text, OUT field text, OUT message text, OUT warnings text[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    v_name text[] := parse_ident(p_table);
    v_new truerank.attachment;
    v_old truerank.attachment;
BEGIN
    IF cardinality(v_name) = 1 THEN
        v_name := ARRAY['public'] || v_name;
    END IF;
    SELECT c.oid, format('attach:%s.%s', v_name[1], v_name[2]) INTO v_new.relation, v_new.source
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = v_name[1] AND c.relname = v_name[2] AND cardinality(v_name) = 2;
    SELECT b.id INTO v_new.board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_new.relation IS NULL OR v_new.board_id IS NULL THEN
        field := CASE WHEN v_new.board_id IS NULL THEN 'board' ELSE 'table' END;
        outcome := field || '_unknown';
        message := format('there is no %s %s', field,
                          CASE field WHEN 'board' THEN quote_literal(p_board) ELSE p_table END);
        RETURN;
    END IF;

    v_new.event_id := p_event_id;
    v_new.member := p_member;
    v_new.value := p_value;
    v_new.value_fixed := p_value_fixed;
    v_new.occurred_at := p_occurred_at;
    v_new.zone := p_zone;
    v_new.ties := coalesce(p_ties, '{}');
    v_new.condition := p_condition;
    v_new.prefix := p_prefix;
    v_new.on_update := p_on_update;
    v_new.on_delete := p_on_delete;
    v_new.on_refusal := p_on_refusal;
    SELECT j.code, j.field, j.message INTO outcome, field, message
    FROM truerank.judge_attachment(v_new) AS j;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;

    SELECT a.* INTO v_old FROM truerank.attachment AS a
    WHERE a.board_id = v_new.board_id AND a.detached_at IS NULL AND a.prefix = p_prefix
      AND (a.relation = v_new.relation
           -- UUIDs don't meet by themselves; other ids of two tables do.
           OR (SELECT t.atttypid FROM pg_attribute AS t
               WHERE t.attrelid = v_new.relation AND t.attname = p_event_id) <> 'uuid'::regtype)
    ORDER BY a.relation <> v_new.relation LIMIT 1;
    IF v_old.id IS NULL THEN
        INSERT INTO truerank.attachment
            (board_id, relation, source, prefix, event_id, member, value, value_fixed, occurred_at,
             zone, ties, condition, on_update, on_delete, on_refusal)
        SELECT v_new.board_id, v_new.relation, v_new.source, v_new.prefix, v_new.event_id,
               v_new.member, v_new.value, v_new.value_fixed, v_new.occurred_at, v_new.zone,
               v_new.ties, v_new.condition, v_new.on_update, v_new.on_delete, v_new.on_refusal
        RETURNING * INTO v_old;
        outcome := 'attached';
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_old.board_id, p_actor, 'attach', v_old.source, p_reason, to_jsonb(v_old));
    ELSIF v_old.relation <> v_new.relation THEN
        outcome := 'prefix_needed';
        field := 'prefix';
        message := format('%s feeds this board already: its ids and yours could meet, so put '
                          'another prefix before these', v_old.relation);
        RETURN;
    ELSIF (v_old.event_id, v_old.member, v_old.value, v_old.value_fixed, v_old.occurred_at,
           v_old.zone, v_old.ties, v_old.condition, v_old.on_update, v_old.on_delete,
           v_old.on_refusal)
          IS DISTINCT FROM
          (v_new.event_id, v_new.member, v_new.value, v_new.value_fixed, v_new.occurred_at,
           v_new.zone, v_new.ties, v_new.condition, v_new.on_update, v_new.on_delete,
           v_new.on_refusal) THEN
        outcome := 'attachment_differs';
        field := 'table';
        message := 'the table feeds this board already, with other settings: detach it first';
        RETURN;
    ELSE
        outcome := 'existing';
    END IF;
    attachment := v_old.id;
    warnings := truerank.warn_attachment(v_old);
    PERFORM truerank.make_attachment_triggers(v_old);
END
$$;
