-- attached_column: how SQL reads a column of an attached table as event_id, member, value, tie or
-- occurred_at; or the code of why it can't.
--
-- Only built-in types, and domains over them: a cast of somebody's own type would run somebody's
-- code with our rights. No floating-point numbers: 0.1 is not what was stored.
CREATE OR REPLACE FUNCTION truerank.attached_column(
    p_relation oid, p_column name, p_role text, p_zone text, OUT expression text, OUT code text
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_type regtype;
BEGIN
    WITH RECURSIVE base AS (
        SELECT a.atttypid AS id FROM pg_attribute AS a
        WHERE a.attrelid = p_relation AND a.attname = p_column AND a.attnum > 0
          AND NOT a.attisdropped
        UNION ALL
        SELECT t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.id
        WHERE t.typtype = 'd'
    )
    SELECT b.id INTO v_type FROM base AS b JOIN pg_type AS t ON t.oid = b.id
    WHERE t.typtype <> 'd';

    IF v_type IS NULL THEN
        code := 'column_unknown';
    ELSIF p_role IN ('event_id', 'member') AND v_type = ANY (
        '{text,varchar,bpchar,uuid,smallint,integer,bigint}'::regtype[]) THEN
        expression := format('%I::text', p_column);
    ELSIF p_role = 'value' AND v_type = ANY (
        '{smallint,integer,bigint,numeric}'::regtype[]) THEN
        expression := format('%I::numeric', p_column);
    ELSIF p_role = 'tie' AND v_type = ANY ('{smallint,integer,bigint}'::regtype[]) THEN
        expression := format('%I::bigint', p_column);
    ELSIF p_role = 'occurred_at' AND v_type = 'timestamptz'::regtype THEN
        expression := format('%I::timestamptz', p_column);
    ELSIF p_role = 'occurred_at' AND v_type = ANY ('{timestamp,date}'::regtype[]) THEN
        IF p_zone IS NULL THEN
            code := 'zone_missing';
        ELSE
            expression := format('(%I::timestamp AT TIME ZONE %L)', p_column, p_zone);
        END IF;
    ELSE
        code := 'column_type';
    END IF;
END
$$;
