-- note_filled: tell how far copies that are being filled are, for people and metrics.
CREATE OR REPLACE FUNCTION truerank.note_filled(
    p_ids uuid[], p_rows bigint[], p_checked bigint[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.generation AS g SET rows = f.rows, checked = f.checked
    FROM unnest(p_ids, p_rows, p_checked) AS f (id, rows, checked)
    WHERE g.id = f.id AND (g.rows, g.checked) IS DISTINCT FROM (f.rows, f.checked)
$$;
