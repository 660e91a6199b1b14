-- parked_rankings: which rankings of some groups are parked, and which of them are due again.
CREATE OR REPLACE FUNCTION truerank.parked_rankings(p_groups smallint[], p_due_only boolean)
RETURNS TABLE (grp smallint, ranking bigint, due boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.grp, p.ranking, p.retry_at <= clock_timestamp()
    FROM truerank.parked_standing AS p
    WHERE p.grp = ANY (p_groups) AND (NOT p_due_only OR p.retry_at <= clock_timestamp())
$$;
