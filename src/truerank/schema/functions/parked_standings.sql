-- parked_standings: rankings that can't be shown from Redis, in the order of their numbers.
--
-- p_after continues after a ranking; p_limit rows at most.
-- Returns: the board's key and the season's label with each; both null where the board is gone.
CREATE OR REPLACE FUNCTION truerank.parked_standings(
    p_after bigint DEFAULT NULL, p_limit integer DEFAULT 1000
) RETURNS TABLE (
    ranking bigint, grp smallint, board text, season text, member text, version bigint,
    reason text, first_seen_at timestamptz, last_seen_at timestamptz, tries integer,
    retry_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.ranking, p.grp, b.key, s.label, p.member, p.version, p.reason, p.first_seen_at,
           p.last_seen_at, p.tries, p.retry_at
    FROM truerank.parked_standing AS p
    LEFT JOIN truerank.board AS b ON b.id = p.ranking >> 36
    LEFT JOIN LATERAL truerank.season_of_ranking(b, p.ranking) AS s ON b.id IS NOT NULL
    WHERE p_after IS NULL OR p.ranking > p_after
    ORDER BY p.ranking LIMIT p_limit
$$;
