-- undivided: whether somebody has a standing in a season, and is yet to be put into a cohort of it.
CREATE OR REPLACE FUNCTION truerank.undivided(p_season bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM truerank.league AS l
        WHERE l.dropped_at IS NULL AND p_season >= l.from_ranking AND p_season < l.to_ranking
          -- Who came by a revision, or a merge, after it was settled has no cohort.
          AND NOT EXISTS (SELECT FROM truerank.ranking AS r
                          WHERE r.id = p_season AND r.state = 'final')
          AND (NOT l.scanned OR EXISTS (
              SELECT FROM truerank.cohort_member AS m
              WHERE m.season = p_season AND m.cohort IS NULL)))
$$;
