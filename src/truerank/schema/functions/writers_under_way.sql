-- writers_under_way: whom the close of a season waits for; see truerank.writers_before.
CREATE OR REPLACE FUNCTION truerank.writers_under_way(p_board text, p_season text)
RETURNS TABLE (pid integer, name text, state text, age_ms bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.*
    FROM truerank.board AS b
    CROSS JOIN LATERAL truerank.find_season(b.id, p_season) AS s
    JOIN truerank.ranking AS r ON r.id = s.ranking
    CROSS JOIN LATERAL truerank.writers_before(b.id, r.barrier_xid) AS w
    WHERE b.key = p_board AND b.deleted_at IS NULL AND r.barrier_at IS NULL
$$;
