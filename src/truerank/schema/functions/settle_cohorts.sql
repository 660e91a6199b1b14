-- settle_cohorts: what a season's settlement says of its cohorts, and who moves to another tier.
--
-- In the transaction of the settlement, from its rows: places in a cohort are those among its
-- members, in the same order and under the same stand-ins, and each cohort's settlement has a digest
-- of its own. Its revisions are those of the season.
-- The first of a cohort, as many as the league promotes, by ordinal rank, go up a tier, or stay in the
-- highest; of the others the last, as many as it demotes, go down, where there is a lower one. Rank 1
-- never goes down. Whoever has no place stays. A revision moves members anew, unless somebody was put
-- into a cohort of a later season already.
CREATE OR REPLACE FUNCTION truerank.settle_cohorts(
    p_board truerank.board, p_season truerank.season, p_revision integer
) RETURNS void
LANGUAGE plpgsql
-- A season that is new to the statistics is taken for empty: every pair would be compared. A loop
-- that is left counts as so dear that the plan would be compiled, for longer than it runs.
SET enable_nestloop = off SET jit = off AS $$
DECLARE
    v_id bigint := p_season.ranking;
    v_league truerank.league;
    v_settlement truerank.settlement;
BEGIN
    IF NOT EXISTS (SELECT FROM truerank.cohort AS c WHERE c.season = v_id) THEN
        RETURN;
    END IF;
    SELECT s.* INTO v_settlement FROM truerank.settlement AS s
    WHERE s.ranking = v_id AND s.revision = p_revision;
    INSERT INTO truerank.settlement_row
        (ranking, revision, ordinal, competition, dense, score, stand_in, left_at, member,
         sort_key, ties)
    SELECT m.cohort, p_revision, row_number() OVER (PARTITION BY m.cohort ORDER BY r.ordinal),
           rank() OVER by_score, dense_rank() OVER by_score, r.score, r.stand_in, r.left_at,
           r.member, r.sort_key, r.ties
    FROM truerank.settlement_row AS r
    JOIN truerank.cohort_member AS m ON m.season = r.ranking AND m.member = r.member
    WHERE r.ranking = v_id AND r.revision = p_revision AND m.cohort IS NOT NULL
    WINDOW by_score AS (PARTITION BY m.cohort ORDER BY r.dense);
    INSERT INTO truerank.settlement_excluded (ranking, revision, member, why, score)
    SELECT m.cohort, p_revision, x.member, x.why, x.score
    FROM truerank.settlement_excluded AS x
    JOIN truerank.cohort_member AS m ON m.season = x.ranking AND m.member = x.member
    WHERE x.ranking = v_id AND x.revision = p_revision AND m.cohort IS NOT NULL;
    INSERT INTO truerank.settlement
        (ranking, revision, settled_at, actor, reason, corrected_to, population, different, total,
         changed, digest)
    SELECT c.ranking, p_revision, v_settlement.settled_at, v_settlement.actor,
           v_settlement.reason, v_settlement.corrected_to, d.population, d.different, d.total,
           CASE WHEN p_revision = 1 THEN 0
                ELSE truerank.count_settlement_changes(c.ranking, p_revision) END, d.digest
    FROM truerank.cohort AS c
    CROSS JOIN LATERAL truerank.settlement_digest(c.ranking, p_revision) AS d
    WHERE c.season = v_id;
    UPDATE truerank.ranking AS r SET
        state = 'final', settled_at = v_settlement.settled_at, revision = p_revision
    FROM truerank.cohort AS c WHERE c.season = v_id AND r.id = c.ranking;

    SELECT l.* INTO v_league FROM truerank.league AS l
    WHERE l.dropped_at IS NULL AND v_id >= l.from_ranking AND v_id < l.to_ranking;
    IF v_league.id IS NULL OR EXISTS (
        SELECT FROM truerank.cohort AS c
        WHERE c.season > v_id AND c.season < v_league.to_ranking) THEN
        RETURN;
    END IF;
    DELETE FROM truerank.league_move AS v WHERE v.season = v_id;
    INSERT INTO truerank.league_move (board_id, period, season, tier_from, tier_to, member)
    SELECT v_league.board_id, v_league.period, v_id, p.tier, p.moved_to, p.member
    FROM (
        SELECT c.tier, r.member,
               CASE WHEN r.ordinal <= v_league.promote
                    THEN least(c.tier + 1, greatest(c.tier, cardinality(v_league.tiers) - 1))
                    WHEN c.tier > 0 AND r.ordinal > 1
                         AND r.ordinal > s.population - v_league.demote THEN c.tier - 1
                    ELSE c.tier END AS moved_to
        FROM truerank.cohort AS c
        JOIN truerank.settlement AS s ON s.ranking = c.ranking AND s.revision = p_revision
        JOIN truerank.settlement_row AS r ON r.ranking = c.ranking AND r.revision = p_revision
        WHERE c.season = v_id
          -- Or those of all seasons ever would be looked through.
          AND r.ranking >= (SELECT min(x.ranking) FROM truerank.cohort AS x WHERE x.season = v_id)
          AND r.ranking <= (SELECT max(x.ranking) FROM truerank.cohort AS x WHERE x.season = v_id)
    ) AS p
    WHERE p.moved_to <> p.tier;
END
$$;
