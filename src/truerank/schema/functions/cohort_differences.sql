-- cohort_differences: what the cohorts of a season say that the season itself doesn't.
--
-- All must be empty: each standing in a cohort is that of the member in the season, each member is
-- in at most one cohort, no cohort is larger than it may be, and where the season is settled, each
-- cohort's newest settlement is that of the season among its members, with the digest of its rows.
-- p_limit: rows of each kind. Whoever waits to be divided misses nothing.
CREATE OR REPLACE FUNCTION truerank.cohort_differences(p_season bigint, p_limit integer)
RETURNS TABLE (cohort integer, subject text, expected text, found text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- A season that is new to the statistics is taken for empty: every pair would be compared. A loop
-- that is left counts as so dear that the plan would be compiled, for longer than it runs.
SET enable_nestloop = off SET jit = off AS $$
    WITH own AS MATERIALIZED (
        SELECT m.cohort, m.member, s.score, s.ties, s.event_at, s.event_position, s.moved,
               s.sort_key
        FROM truerank.cohort_member AS m
        JOIN truerank.standing AS s ON s.ranking = p_season AND s.member = m.member
        WHERE m.season = p_season AND m.cohort IS NOT NULL
    ), held AS MATERIALIZED (
        SELECT x.ranking AS cohort, x.member, x.score, x.ties, x.event_at, x.event_position,
               x.moved, x.sort_key
        FROM truerank.cohort AS c JOIN truerank.standing AS x ON x.ranking = c.ranking
        WHERE c.season = p_season
          -- Or the standings of all seasons ever would be looked through.
          AND x.ranking >= (SELECT min(y.ranking) FROM truerank.cohort AS y WHERE y.season = p_season)
          AND x.ranking <= (SELECT max(y.ranking) FROM truerank.cohort AS y WHERE y.season = p_season)
    )
    (SELECT c.number, coalesce(o.member, h.member), encode(o.sort_key, 'hex'),
            encode(h.sort_key, 'hex')
     FROM own AS o
     FULL JOIN held AS h ON h.cohort = o.cohort AND h.member = o.member
     JOIN truerank.cohort AS c ON c.ranking = coalesce(o.cohort, h.cohort)
     WHERE (o.score, o.ties, o.event_at, o.event_position, o.moved, o.sort_key) IS DISTINCT FROM
           (h.score, h.ties, h.event_at, h.event_position, h.moved, h.sort_key)
     ORDER BY 1, 2 LIMIT p_limit)
    UNION ALL
    (SELECT c.number, 'its size', c.members::text, coalesce(n.n, 0)::text
     FROM truerank.cohort AS c
     LEFT JOIN (SELECT m.cohort, count(*) FILTER (WHERE NOT m.carried) AS n
                FROM truerank.cohort_member AS m
                WHERE m.season = p_season GROUP BY m.cohort) AS n ON n.cohort = c.ranking
     WHERE c.season = p_season AND (coalesce(n.n, 0) <> c.members OR n.n > c.size)
     ORDER BY 1 LIMIT p_limit)
    UNION ALL
    (SELECT NULL, s.member, 'a cohort', NULL
     FROM truerank.league AS l
     JOIN truerank.standing AS s ON s.ranking = p_season
     WHERE l.dropped_at IS NULL AND l.scanned AND p_season >= l.from_ranking
       AND p_season < l.to_ranking
       AND NOT EXISTS (SELECT FROM truerank.cohort_member AS m
                       WHERE m.season = p_season AND m.member = s.member)
       AND NOT EXISTS (SELECT FROM truerank.ranking AS r
                       WHERE r.id = p_season AND r.state = 'final')
     ORDER BY 2 LIMIT p_limit)
    UNION ALL
    (SELECT c.number, 'its settlement', encode(d.digest, 'hex'), encode(s.digest, 'hex')
     FROM truerank.ranking AS r
     JOIN truerank.cohort AS c ON c.season = r.id
     LEFT JOIN (
         -- No cohort has more than a thousand members: one part of the chain of settlement_digest.
         SELECT p.cohort, sha256(truerank.settlement_seed(p.cohort) || string_agg(
                    truerank.settlement_bytes(
                        p.ordinal, p.competition, p.dense, p.stand_in, p.sort_key), ''::bytea
                    ORDER BY p.ordinal)) AS digest
         FROM (
             SELECT m.cohort, x.stand_in, x.sort_key,
                    row_number() OVER (PARTITION BY m.cohort ORDER BY x.ordinal) AS ordinal,
                    rank() OVER by_score AS competition, dense_rank() OVER by_score AS dense
             FROM truerank.settlement_row AS x
             JOIN truerank.cohort_member AS m ON m.season = p_season AND m.member = x.member
             WHERE x.ranking = p_season AND m.cohort IS NOT NULL AND x.revision = (
                 SELECT y.revision FROM truerank.ranking AS y WHERE y.id = p_season)
             WINDOW by_score AS (PARTITION BY m.cohort ORDER BY x.dense)
         ) AS p
         GROUP BY p.cohort
     ) AS d ON d.cohort = c.ranking
     LEFT JOIN truerank.settlement AS s ON s.ranking = c.ranking AND s.revision = r.revision
     WHERE r.id = p_season AND r.state = 'final'
       AND coalesce(d.digest, truerank.settlement_seed(c.ranking)) IS DISTINCT FROM s.digest
     ORDER BY 1 LIMIT p_limit)
$$;
