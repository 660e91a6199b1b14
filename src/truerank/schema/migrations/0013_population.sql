-- How many standings each ranking has, so that no read counts them all.

-- Exact in every snapshot: the sum of a ranking's row and of its changes. The changes are rows of
-- their own, written by the transactions that add or remove standings, until the worker takes
-- them in; so writers never wait for one row.
CREATE TABLE truerank.population (
    ranking bigint PRIMARY KEY,
    n bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE truerank.population_change (
    ranking bigint NOT NULL,
    n bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX population_change_of ON truerank.population_change (ranking);

-- As in functions/: the triggers need it before those are made.
CREATE FUNCTION truerank.count_standings() RETURNS trigger
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

-- The first trigger's lock keeps writers out until the count is committed. Where a snapshot is
-- older than that lock, writers who committed meanwhile would be missed.
DO $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE =
            'this migration runs at the isolation level read committed';
    END IF;
END
$$;
CREATE TRIGGER standing_added AFTER INSERT ON truerank.standing
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION truerank.count_standings();
CREATE TRIGGER standing_removed AFTER DELETE ON truerank.standing
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION truerank.count_standings();
CREATE TRIGGER standing_truncated AFTER TRUNCATE ON truerank.standing
    FOR EACH STATEMENT EXECUTE FUNCTION truerank.count_standings();
INSERT INTO truerank.population (ranking, n)
SELECT s.ranking, count(*) FROM truerank.standing AS s GROUP BY s.ranking;

-- Who is withheld on a board, found without those who were once.
CREATE INDEX member_state_withheld_on ON truerank.member_state (board_id, member)
    WHERE state IN ('hidden', 'banned', 'merged');
