-- fillings: copies that are being filled: why, and how far; of all groups, or of some copies.
CREATE OR REPLACE FUNCTION truerank.fillings(p_ids uuid[] DEFAULT NULL)
RETURNS TABLE (id uuid, grp smallint, cause text, rows bigint, rows_about bigint, checked bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.id, g.grp, g.cause, g.rows, g.rows_about, g.checked FROM truerank.generation AS g
    WHERE g.state = 'warming' AND (p_ids IS NULL OR g.id = ANY (p_ids)) ORDER BY g.grp
$$;
