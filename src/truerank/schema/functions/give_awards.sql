-- give_awards: give out what the rules of a board say, in the transaction of a settlement.
--
-- The rules are those that the snapshot of the first settlement had in force; one award per rule and
-- member. A revision gives it to others as well, and withdraws it from who has no claim any more.
-- An award that is changed keeps its id, and what it was stays under its old change: see
-- acknowledge_awards. Whoever was merged into another id since keeps the award under that one, with
-- nothing to be done. Where several ids that are one member by now had one by the same rule, one of
-- them stays its: one that is given before one that is withdrawn, of these one that was dealt with,
-- then its own; the others are withdrawn, under ids that were merged into it.
--   ranks    every member whose rank in the rule's numbering lies between the two. ordinal: as many
--            as there are ranks, of equals those who were first. competition, dense: equals all.
--   percent  every member whose competition rank is at most so many percent of the population,
--            rounded up: of equals at the edge all, as they share that rank
--   score    every member whose score is as good, in the board's order
-- Locks:   one that only this takes, so that changes are numbered in the order of commits.
CREATE OR REPLACE FUNCTION truerank.give_awards(
    p_board truerank.board, p_season truerank.season, p_revision integer
) RETURNS void
-- Who is entitled is known of no statistics: comparing all awards with all of them would be quadratic.
LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE
    v_id bigint := p_season.ranking;
    v_rule truerank.award_rule;
    v_pair record;
BEGIN
    IF p_revision = 1 THEN
        INSERT INTO truerank.settlement_rule (ranking, rule_id)
        SELECT v_id, r.id FROM truerank.award_rule AS r
        WHERE r.board_id = p_board.id AND r.period = p_season.period AND r.dropped_at IS NULL;
    END IF;
    FOR v_rule IN
        SELECT r.* FROM truerank.settlement_rule AS s
        JOIN truerank.award_rule AS r ON r.id = s.rule_id
        WHERE s.ranking = v_id ORDER BY r.id
    LOOP
        PERFORM pg_advisory_xact_lock(truerank.lock_class(), 257);
        FOR v_pair IN
            SELECT k.id, k.member, k.owner, a.id AS other
            FROM truerank.awards_kept(v_id, v_rule.id) AS k
            JOIN truerank.award AS a
              ON a.ranking = v_id AND a.rule_id = v_rule.id AND a.member = k.owner
            WHERE p_revision > 1 AND k.member <> k.owner
        LOOP
            -- The ids of the two change places.
            UPDATE truerank.award AS a SET member = '' WHERE a.id = v_pair.other;
            UPDATE truerank.award AS a SET member = v_pair.owner WHERE a.id = v_pair.id;
            UPDATE truerank.award AS a SET member = v_pair.member WHERE a.id = v_pair.other;
        END LOOP;
        WITH entitled AS MATERIALIZED (
            SELECT c.member, c.rank, c.score
            FROM truerank.award_claims(v_rule, p_board.descending, v_id, p_revision) AS c
        ), held AS MATERIALIZED (
            SELECT k.id, k.owner, a.state, a.rank, a.score
            FROM truerank.awards_kept(v_id, v_rule.id) AS k JOIN truerank.award AS a ON a.id = k.id
            WHERE p_revision > 1
        ), stays AS MATERIALIZED (
            SELECT h.id, h.owner FROM held AS h JOIN entitled AS e ON e.member = h.owner
        ), given AS MATERIALIZED (
            SELECT e.*, nextval('truerank.award_change') AS change
            FROM (SELECT c.member, c.rank, c.score, h.id
                  FROM entitled AS c LEFT JOIN held AS h ON h.owner = c.member
                  WHERE (h.state, h.rank, h.score) IS DISTINCT FROM ('given', c.rank, c.score)
                  ORDER BY c.rank, c.member) AS e
        ), past AS (
            INSERT INTO truerank.award_past
                (change, award_id, state, revision, rank, score, changed_at, acknowledged_at,
                 acknowledged_by)
            SELECT a.change, a.id, a.state, a.revision, a.rank, a.score, a.changed_at,
                   a.acknowledged_at, a.acknowledged_by
            FROM truerank.award AS a
            LEFT JOIN stays AS s ON s.id = a.id
            LEFT JOIN given AS g ON g.id = a.id
            WHERE a.ranking = v_id AND a.rule_id = v_rule.id
              AND (g.id IS NOT NULL OR s.id IS NULL AND a.state = 'given')
        ), withdrawn AS (
            UPDATE truerank.award AS a SET
                state = 'withdrawn', revision = p_revision, changed_at = clock_timestamp(),
                change = nextval('truerank.award_change'), acknowledged_at = NULL,
                acknowledged_by = NULL
            WHERE a.ranking = v_id AND a.rule_id = v_rule.id AND a.state = 'given'
              AND NOT EXISTS (SELECT FROM stays AS s WHERE s.id = a.id)
        ), kept AS (
            UPDATE truerank.award AS a SET
                member = s.owner, state = 'given', revision = CASE WHEN g.id IS NULL THEN a.revision
                                                 ELSE p_revision END,
                change = coalesce(g.change, a.change), rank = coalesce(g.rank, a.rank),
                score = coalesce(g.score, a.score),
                changed_at = CASE WHEN g.id IS NULL THEN a.changed_at
                                  ELSE clock_timestamp() END,
                acknowledged_at = CASE WHEN g.id IS NULL THEN a.acknowledged_at END,
                acknowledged_by = CASE WHEN g.id IS NULL THEN a.acknowledged_by END
            FROM stays AS s LEFT JOIN given AS g ON g.id = s.id
            WHERE a.id = s.id AND (g.id IS NOT NULL OR a.member <> s.owner)
        )
        INSERT INTO truerank.award
            (change, ranking, rule_id, member, state, revision, rank, score, changed_at)
        SELECT g.change, v_id, v_rule.id, g.member, 'given', p_revision, g.rank, g.score,
               clock_timestamp()
        FROM given AS g WHERE g.id IS NULL ORDER BY g.change;
    END LOOP;
END
$$;
