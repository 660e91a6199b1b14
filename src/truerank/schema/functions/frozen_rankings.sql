-- frozen_rankings: the seasons of a board of which the public is shown what they were, by number;
-- with their cohorts, of which it is shown nothing.
CREATE OR REPLACE FUNCTION truerank.frozen_rankings(p_board_id integer) RETURNS bigint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH frozen AS (
        SELECT f.ranking FROM truerank.freeze AS f
        WHERE f.board_id = p_board_id AND f.revealed_at IS NULL AND f.frozen_at IS NOT NULL
    )
    SELECT ARRAY(SELECT f.ranking FROM frozen AS f
                 UNION ALL
                 SELECT c.ranking FROM frozen AS f
                 JOIN truerank.cohort AS c ON c.season = f.ranking)
$$;
