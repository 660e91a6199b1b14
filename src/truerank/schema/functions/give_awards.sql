-- give_awards: give out what the rules of a board say, in the transaction of a settlement.
--
-- The rules are those that the snapshot of the first settlement had in force; one award per rule and
-- member. A revision gives it to others as well, and withdraws it from who has no claim any more.
-- An award that is changed keeps its id, and what it was stays under its old change: see
-- acknowledge_awards.
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
        WITH entitled AS MATERIALIZED (
            SELECT c.member, c.rank, c.score
            FROM truerank.award_claims(v_rule, p_board.descending, v_id, p_revision) AS c
        ), past AS (
            INSERT INTO truerank.award_past
                (change, award_id, state, revision, rank, score, changed_at, acknowledged_at,
                 acknowledged_by)
            SELECT a.change, a.id, a.state, a.revision, a.rank, a.score, a.changed_at,
                   a.acknowledged_at, a.acknowledged_by
            FROM truerank.award AS a LEFT JOIN entitled AS e ON e.member = a.member
            WHERE a.ranking = v_id AND a.rule_id = v_rule.id
              AND CASE WHEN e.member IS NULL THEN a.state = 'given'
                       ELSE (a.state, a.rank, a.score) <> ('given', e.rank, e.score) END
        ), withdrawn AS (
            UPDATE truerank.award AS a SET
                state = 'withdrawn', revision = p_revision, changed_at = clock_timestamp(),
                change = nextval('truerank.award_change'), acknowledged_at = NULL,
                acknowledged_by = NULL
            WHERE a.ranking = v_id AND a.rule_id = v_rule.id AND a.state = 'given'
              AND NOT EXISTS (SELECT FROM entitled AS e WHERE e.member = a.member)
        )
        INSERT INTO truerank.award AS a
            (change, ranking, rule_id, member, state, revision, rank, score, changed_at)
        SELECT nextval('truerank.award_change'), v_id, v_rule.id, e.member, 'given', p_revision,
               e.rank, e.score, clock_timestamp()
        FROM (SELECT * FROM entitled ORDER BY rank, member) AS e
        ON CONFLICT (ranking, rule_id, member) DO UPDATE SET
            change = excluded.change, state = 'given', revision = excluded.revision,
            rank = excluded.rank, score = excluded.score, changed_at = excluded.changed_at,
            acknowledged_at = NULL, acknowledged_by = NULL
        WHERE (a.state, a.rank, a.score) <> ('given', excluded.rank, excluded.score);
    END LOOP;
END
$$;
