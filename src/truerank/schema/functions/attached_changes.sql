-- attached_changes: the text of a query on transition tables that gives, as two arrays of facts,
-- what a statement took from an attached table and what it brought.
--
-- A row whose fact stayed the same is in neither. Unless changes are corrections, an update brings
-- only rows that were there, and were no events yet: the condition has become true for them.
CREATE OR REPLACE FUNCTION truerank.attached_changes(
    p_attachment truerank.attachment, p_op text, p_relation oid
) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_was record := truerank.attached_query(p_attachment, p_relation, 'truerank_old');
    v_now record := truerank.attached_query(p_attachment, p_relation, 'truerank_new');
BEGIN
    IF p_op = 'INSERT' THEN
        RETURN format('SELECT NULL, array_agg(%s) %s', v_now.fact, v_now.source);
    ELSIF p_op = 'DELETE' THEN
        RETURN format('SELECT array_agg(%s), NULL %s', v_was.fact, v_was.source);
    END IF;
    RETURN format(
        'WITH was AS MATERIALIZED (SELECT %s AS fact %s),
              now AS MATERIALIZED (SELECT %s AS fact, row_number() OVER () AS ord %s)
         SELECT (SELECT array_agg(w.fact) FROM was AS w
                 WHERE NOT EXISTS (SELECT FROM now AS n WHERE n.fact = w.fact)),
                (SELECT array_agg(n.fact ORDER BY n.ord) FROM now AS n
                 WHERE NOT EXISTS (SELECT FROM was AS w WHERE w.fact = n.fact) %s)',
        v_was.fact, v_was.source, v_now.fact, v_now.source,
        CASE WHEN p_attachment.on_update <> 'correct' THEN format(
            'AND (n.fact).event_id IN (SELECT %L || o.%s::text FROM truerank_old AS o)
             AND NOT EXISTS (SELECT FROM was AS w WHERE (w.fact).event_id = (n.fact).event_id)',
            p_attachment.prefix, v_was.id) END);
END
$$;
