-- fold_populations: take at most p_rows_max changes of populations into the populations.
--
-- One statement, so every snapshot shows each change on one side or the other. Several may run at
-- once: changes that another is at work on are passed over, and populations locked in one order.
-- Returns: how many changes there were.
CREATE OR REPLACE FUNCTION truerank.fold_populations(p_rows_max integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_folded bigint;
    v_empty bigint[];
BEGIN
    WITH taken AS (
        DELETE FROM truerank.population_change AS c WHERE c.ctid = ANY (ARRAY(
            SELECT x.ctid FROM truerank.population_change AS x
            LIMIT p_rows_max FOR UPDATE SKIP LOCKED))
        RETURNING c.ranking, c.n
    ), folded AS (
        INSERT INTO truerank.population AS p (ranking, n)
        SELECT t.ranking, sum(t.n) FROM taken AS t GROUP BY t.ranking ORDER BY t.ranking
        ON CONFLICT (ranking) DO UPDATE SET n = p.n + excluded.n
        RETURNING p.ranking, p.n
    )
    SELECT (SELECT count(*) FROM taken), array_agg(f.ranking) FILTER (WHERE f.n = 0)
    INTO v_folded, v_empty FROM folded AS f;
    DELETE FROM truerank.population AS p WHERE p.ranking = ANY (v_empty) AND p.n = 0;
    RETURN v_folded;
END
$$;
