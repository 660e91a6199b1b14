-- dense_turns: how often dense counting was turned on or off for boards of each group.
--
-- A sum, for numbers drawn by the changes would not be in the order of their commits.
CREATE OR REPLACE FUNCTION truerank.dense_turns(p_groups smallint[])
RETURNS TABLE (grp smallint, turns bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.grp, sum(b.dense_turns) FROM truerank.board AS b
    WHERE b.grp = ANY (p_groups) AND b.dense_turns > 0 GROUP BY b.grp
$$;
