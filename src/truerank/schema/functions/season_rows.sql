-- season_rows: seasons as rows; the planner expects many, and joins by hashing, as in changed_rows.
CREATE OR REPLACE FUNCTION truerank.season_rows(p_seasons truerank.season[])
RETURNS SETOF truerank.season
LANGUAGE sql STABLE STRICT ROWS 1000 AS $$
    SELECT * FROM unnest(p_seasons)
$$;
