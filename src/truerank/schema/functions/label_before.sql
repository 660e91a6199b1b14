-- label_before: the label of the season that has to be final before another one can be settled.
--
-- p_season as in find_season. Null: there is none. See season_before.
CREATE OR REPLACE FUNCTION truerank.label_before(p_board text, p_season text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    SELECT (truerank.season_of_ranking(b, truerank.season_before(s.ranking))).label
    FROM truerank.board AS b CROSS JOIN LATERAL truerank.find_season(b.id, p_season) AS s
    WHERE b.key = p_board AND b.deleted_at IS NULL
$$;
