-- park_standings: note rankings that can't be applied, each with the standing that was refused.
--
-- A ranking seen for the first time is to be tried again at once, in a new copy, where
-- p_at_once; after that in a minute, then ever later, up to six hours.
CREATE OR REPLACE FUNCTION truerank.park_standings(
    p_rankings bigint[], p_groups smallint[], p_members text[], p_versions bigint[],
    p_reasons text[], p_at_once boolean
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO truerank.parked_standing AS p (ranking, grp, member, version, reason, retry_at)
    SELECT r.ranking, r.grp, r.member, r.version, r.reason,
           clock_timestamp() + CASE WHEN p_at_once THEN interval '0' ELSE interval '1 minute' END
    FROM unnest(p_rankings, p_groups, p_members, p_versions, p_reasons)
        AS r (ranking, grp, member, version, reason)
    ORDER BY r.ranking
    ON CONFLICT (ranking) DO UPDATE SET
        member = excluded.member, version = excluded.version, reason = excluded.reason,
        last_seen_at = clock_timestamp(), tries = p.tries + 1,
        retry_at = clock_timestamp()
            + least(interval '1 minute' * 4 ^ least(p.tries - 1, 9), interval '6 hours')
$$;
