-- count_standings: note by how many a statement changed the population of each ranking.
--
-- The trigger of truerank.standing: whatever adds or removes standings is counted, in the same
-- transaction. A row of its own each time, so that no writer waits for another.
CREATE OR REPLACE FUNCTION truerank.count_standings() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM truerank.population_change;
        DELETE FROM truerank.population;
    ELSE
        INSERT INTO truerank.population_change (ranking, n)
        SELECT c.ranking, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
        FROM changed AS c GROUP BY c.ranking;
    END IF;
    RETURN NULL;
END
$$;
