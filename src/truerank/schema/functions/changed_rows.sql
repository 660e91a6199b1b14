-- changed_rows: what a command changed, as rows; the planner expects many, and joins by hashing.
--
-- Of unnest() itself it expects ten in a plan made for any parameters, and would compare each
-- event with each change.
CREATE OR REPLACE FUNCTION truerank.changed_rows(p_changed truerank.changed[])
RETURNS SETOF truerank.changed
LANGUAGE sql STABLE STRICT ROWS 1000 AS $$
    SELECT * FROM unnest(p_changed)
$$;
