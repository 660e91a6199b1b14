-- judge_attachment: why a table can't feed a board as described; nothing is changed.
--
-- Returns: field and message of the first fault with its code; code null where all is well.
CREATE OR REPLACE FUNCTION truerank.judge_attachment(
    p_attachment truerank.attachment, OUT code text, OUT field text, OUT message text
)
LANGUAGE plpgsql AS $$
DECLARE
    v_table pg_class;
    v_read record;
BEGIN
    SELECT c.* INTO v_table FROM pg_class AS c WHERE c.oid = p_attachment.relation;
    SELECT f.code, f.field, f.message INTO code, field, message FROM (VALUES
        (v_table.relkind NOT IN ('r', 'p'), 'table_kind', 'table', 'only tables have rows of their own'),
        (v_table.relnamespace IN ('truerank'::regnamespace, 'pg_catalog'::regnamespace,
                                  'information_schema'::regnamespace),
         'table_reserved', 'table', 'tables of the system can''t be attached'),
        (v_table.relpersistence <> 'p', 'table_not_durable', 'table',
         'an unlogged or temporary table loses its rows without a trace'),
        (v_table.relispartition, 'table_is_partition', 'table',
         'attach the partitioned table it belongs to'),
        (v_table.relkind = 'r' AND EXISTS (
            SELECT FROM pg_inherits AS i WHERE v_table.oid IN (i.inhrelid, i.inhparent)),
         'table_inherits', 'table', 'triggers don''t see what is written through other tables'),
        (EXISTS (SELECT FROM truerank.attached_tables(p_attachment) AS t
                 JOIN pg_class AS c ON c.oid = t WHERE c.relkind = 'f'),
         'table_kind', 'table', 'a foreign table among its partitions has no such triggers'),
        (NOT (has_table_privilege(v_table.oid, 'SELECT')
              AND has_table_privilege(v_table.oid, 'TRIGGER')
              AND has_any_column_privilege(v_table.oid, 'UPDATE')),
         'privilege_missing', 'table',
         format('role %I needs SELECT, UPDATE (to lock rows) and TRIGGER', current_user)),
        (p_attachment.zone IS NOT NULL AND NOT EXISTS (
            SELECT FROM pg_timezone_names AS z WHERE z.name = p_attachment.zone),
         'zone_unknown', 'zone', format('no time zone is called %L', p_attachment.zone)),
        (num_nonnulls(p_attachment.value, p_attachment.value_fixed) <> 1, 'value_missing', 'value',
         'name a column of values, or one value for every row'),
        (cardinality(p_attachment.ties) <> (
            SELECT cardinality(b.tie_names) FROM truerank.board AS b
            WHERE b.id = p_attachment.board_id),
         'ties_differ', 'ties', 'name one column for each tie-break of the board, in their order')
    ) AS f (fault, code, field, message) WHERE f.fault LIMIT 1;
    IF code IS NOT NULL THEN
        RETURN;
    END IF;

    SELECT r.code, c.role, c.name INTO code, field, message
    FROM (SELECT 1 AS ord, 'event_id' AS role, p_attachment.event_id AS name
          UNION ALL SELECT 2, 'member', p_attachment.member
          UNION ALL SELECT 3, 'value', p_attachment.value
          UNION ALL SELECT 4, 'occurred_at', p_attachment.occurred_at
          UNION ALL SELECT 5, 'tie', t FROM unnest(p_attachment.ties) AS t) AS c
    CROSS JOIN LATERAL truerank.attached_column(
        p_attachment.relation, c.name, c.role, p_attachment.zone) AS r
    WHERE c.name IS NOT NULL AND r.code IS NOT NULL ORDER BY c.ord LIMIT 1;
    IF code IS NOT NULL THEN
        message := format(CASE code
            WHEN 'column_unknown' THEN 'the table has no column %I'
            WHEN 'zone_missing' THEN 'column %I has no time zone: name the one it is meant in'
            ELSE 'column %I has a type that can''t be read exactly as ' || field END, message);
        RETURN;
    END IF;

    v_read := truerank.attached_query(p_attachment, p_attachment.relation, NULL);
    BEGIN
        EXECUTE format('SELECT %s %s LIMIT 0', v_read.fact, v_read.source);
    EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
        code := 'condition_invalid';
        field := 'condition';
        message := SQLERRM;
    END;
END
$$;
