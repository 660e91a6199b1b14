-- attached_query: the parts of a SELECT that reads rows of an attached table as events.
--
-- fact makes a truerank.attached_fact; id is the column of the event id as it is; source is FROM
-- and WHERE, and more conditions may follow behind an AND.
-- p_rows names a transition table; null: the table itself.
-- Raises:  TR002 where a column is gone or has become something else.
CREATE OR REPLACE FUNCTION truerank.attached_query(
    p_attachment truerank.attachment, p_relation oid, p_rows text,
    OUT fact text, OUT id text, OUT source text
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_column record;
    v_read text[] := '{}';
    v_ties text[] := '{}';
    v_rows text := p_rows;
BEGIN
    FOR v_column IN
        SELECT c.role, c.name, r.expression
        FROM (SELECT 1 AS ord, 'event_id' AS role, p_attachment.event_id AS name
              UNION ALL SELECT 2, 'member', p_attachment.member
              UNION ALL SELECT 3, 'value', p_attachment.value
              UNION ALL SELECT 4, 'occurred_at', p_attachment.occurred_at
              UNION ALL SELECT 4 + t.ord, 'tie', t.name
                        FROM unnest(p_attachment.ties) WITH ORDINALITY AS t (name, ord)) AS c
        CROSS JOIN LATERAL truerank.attached_column(
            p_relation, c.name, c.role, p_attachment.zone) AS r
        ORDER BY c.ord
    LOOP
        IF v_column.name IS NOT NULL AND v_column.expression IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'TR002', DETAIL = 'attachment_broken',
                MESSAGE = format('column %I of %s is gone or no %s any more', v_column.name,
                                 p_relation::regclass, v_column.role);
        ELSIF v_column.role = 'tie' THEN
            v_ties := v_ties || v_column.expression;
        ELSE
            v_read := v_read || coalesce(v_column.expression, CASE v_column.role
                WHEN 'value' THEN format('%L::numeric', p_attachment.value_fixed)
                ELSE 'NULL::timestamptz' END);
        END IF;
    END LOOP;

    -- A transition table holds nulls in the place of virtual columns.
    IF p_rows IS NOT NULL AND EXISTS (
        SELECT FROM pg_attribute AS a WHERE a.attrelid = p_relation AND a.attgenerated = 'v') THEN
        SELECT format('(SELECT %s FROM %s)', string_agg(
            CASE WHEN a.attgenerated = 'v' THEN format(
                '(%s)::%s AS %I', pg_get_expr(d.adbin, d.adrelid),
                format_type(a.atttypid, a.atttypmod), a.attname)
            ELSE quote_ident(a.attname) END, ', ' ORDER BY a.attnum), p_rows)
        INTO v_rows
        FROM pg_attribute AS a
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = p_relation AND a.attnum > 0 AND NOT a.attisdropped;
    END IF;

    fact := format('ROW(%s || %s, %s, %s, %s, %s)::truerank.attached_fact',
                   quote_literal(p_attachment.prefix), v_read[1], v_read[2], v_read[3], v_read[4],
                   CASE cardinality(v_ties) WHEN 0 THEN 'NULL::bigint[]' ELSE
                   format('ARRAY[%s]', array_to_string(v_ties, ', ')) END);
    id := quote_ident(p_attachment.event_id);
    -- The line break ends a comment in the condition.
    SELECT format(E'FROM %s AS %I WHERE (%s\n)', coalesce(v_rows, p_relation::regclass::text),
                  c.relname, coalesce(p_attachment.condition, 'true'))
    INTO source FROM pg_class AS c WHERE c.oid = p_relation;
END
$$;
