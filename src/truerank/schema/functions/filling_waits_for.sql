-- filling_waits_for: the transactions that don't know of an added period; see truerank.writers_before.
--
-- No row either before the first attempt to compute its seasons.
CREATE OR REPLACE FUNCTION truerank.filling_waits_for(p_board text)
RETURNS TABLE (pid integer, name text, state text, age_ms bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.*
    FROM truerank.board AS b
    CROSS JOIN LATERAL truerank.writers_before(b.id, b.filling_xid) AS w
    WHERE b.key = p_board AND b.deleted_at IS NULL AND b.filling <> '{}'
$$;
