-- leagues: how seasons are divided, of a board or of all, and how far that has come.
--
-- from_season: the first that is divided; null for custom ones. scanned: standings from before were
-- looked at. undivided: members that wait for a cohort, at most 10,000 are counted. waits_for: the
-- season that has to be closed before those of the newest one are divided.
CREATE OR REPLACE FUNCTION truerank.leagues(p_board text DEFAULT NULL)
RETURNS TABLE (board text, period text, size integer, by_key boolean, tiers text[],
               promote integer, demote integer, from_season text, scanned boolean,
               undivided bigint, waits_for text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    SELECT b.key, l.period, l.size, l.by_key, l.tiers, l.promote, l.demote,
           CASE WHEN l.period <> 'custom'
                THEN truerank.period_label(l.period, CASE WHEN l.period = 'all' THEN 0
                     ELSE ((l.from_ranking & 4294967295) - 2147483648)::integer END) END,
           l.scanned,
           (SELECT count(*) FROM (
                SELECT FROM truerank.cohort_member AS m
                WHERE m.cohort IS NULL AND m.season >= l.from_ranking AND m.season < l.to_ranking
                LIMIT 10000) AS u),
           (SELECT (truerank.season_of_ranking(b, truerank.league_waits_for(l, m.season))).label
            FROM truerank.cohort_member AS m
            WHERE m.cohort IS NULL AND m.season >= l.from_ranking AND m.season < l.to_ranking
            ORDER BY m.season DESC LIMIT 1)
    FROM truerank.league AS l JOIN truerank.board AS b ON b.id = l.board_id
    WHERE l.dropped_at IS NULL AND b.deleted_at IS NULL AND (p_board IS NULL OR b.key = p_board)
    ORDER BY b.key, l.period
$$;
