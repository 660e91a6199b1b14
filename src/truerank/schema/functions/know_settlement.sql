-- know_settlement: have PostgreSQL know how many places a new settlement has, where it adds much.
--
-- Until it does, it takes one index of settlement_row for as good as the other, and looks at all
-- places of a season to find one member. Autovacuum comes a minute later.
-- In a transaction of its own, after the settlement's. Who works at the table already is not waited
-- for.
CREATE OR REPLACE FUNCTION truerank.know_settlement(p_board text, p_season text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- How many there are is known from a small sample, in little time.
SET default_statistics_target = 10 AS $$
DECLARE
    v_population bigint := (
        SELECT s.population FROM truerank.board AS b
        CROSS JOIN LATERAL truerank.find_season(b.id, coalesce(p_season, '')) AS f
        JOIN truerank.settlement AS s ON s.ranking = f.ranking AND s.revision = f.revision
        WHERE b.key = p_board AND b.deleted_at IS NULL);
BEGIN
    IF v_population >= 1000 AND v_population > 0.1 * (
        SELECT c.reltuples FROM pg_class AS c WHERE c.oid = 'truerank.settlement_row'::regclass) THEN
        ANALYZE (SKIP_LOCKED) truerank.settlement_row (ranking, revision, member);
        ANALYZE (SKIP_LOCKED) truerank.award;
    END IF;
END
$$;
