-- warn_attachment: what will work, and may not be what was meant: codes.
CREATE OR REPLACE FUNCTION truerank.warn_attachment(p_attachment truerank.attachment)
RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT array_remove(ARRAY[
        CASE WHEN NOT coalesce(bool_or(i.indisvalid AND i.indpred IS NULL
                                       AND i.indkey[0] = a.attnum), false)
             THEN 'event_id_not_indexed' END,
        CASE WHEN NOT coalesce(bool_or(i.indisunique AND i.indisvalid AND i.indpred IS NULL
                                       AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum), false)
             THEN 'event_id_not_unique' END,
        CASE WHEN NOT a.attnotnull THEN 'event_id_nullable' END,
        CASE WHEN (p_attachment).occurred_at IS NULL THEN 'occurred_at_missing' END], NULL)
    FROM pg_attribute AS a
    LEFT JOIN pg_index AS i ON i.indrelid = a.attrelid
    WHERE a.attrelid = (p_attachment).relation AND a.attname = (p_attachment).event_id
    GROUP BY a.attnum, a.attnotnull
$$;
