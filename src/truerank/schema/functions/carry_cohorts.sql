-- carry_cohorts: give a member the places in cohorts of the one that was merged into it.
--
-- Where it has none itself; so who is renamed stays where it was. Else the place stays empty, as that
-- of whoever leaves. What the cohort holds follows with the standings. Of a season that is settled
-- p_from is known still to have had the place then; whoever was settled in no cohort gets none.
-- The caller has the boards' locks, so that no season is settled meanwhile.
-- Locks:   all standings of both where there is such a season, by ranking and member, as all who write
--          in cohorts do.
CREATE OR REPLACE FUNCTION truerank.carry_cohorts(p_from text, p_into text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_gone truerank.changed[];
    v_taken bigint[];
    v_seasons bigint[] := ARRAY(
        SELECT DISTINCT r FROM truerank.member_rankings(p_into, 0) AS r
        JOIN truerank.cohort_member AS m ON m.season = r AND m.member = p_from
        WHERE NOT EXISTS (
            SELECT FROM truerank.ranking AS x
            JOIN truerank.settlement_row AS s
              ON s.ranking = x.id AND s.revision = x.revision AND s.member = p_into
            WHERE x.id = r AND x.state = 'final')
        ORDER BY r);
BEGIN
    IF cardinality(v_seasons) = 0 THEN
        RETURN;
    END IF;
    -- Not those of the seasons alone: the others are locked next (see refold_member), and somebody who
    -- has one of them may be waiting for one of these.
    PERFORM FROM truerank.standing AS s
    WHERE s.ranking = ANY (ARRAY(SELECT r FROM truerank.member_rankings(p_into, 0) AS r))
      AND s.member = ANY (truerank.names_of(p_into))
    ORDER BY s.ranking, s.member FOR UPDATE;
    WITH taken AS (
        INSERT INTO truerank.cohort_member AS o (season, cohort, first_position, member)
        SELECT m.season, m.cohort, m.first_position, p_into FROM truerank.cohort_member AS m
        WHERE m.season = ANY (v_seasons) AND m.member = p_from
        ORDER BY m.season
        ON CONFLICT (season, member) DO UPDATE SET
            cohort = excluded.cohort,
            first_position = least(o.first_position, excluded.first_position)
        WHERE o.cohort IS NULL
        RETURNING o.season
    )
    SELECT array_agg(t.season) INTO v_taken FROM taken AS t;
    UPDATE truerank.cohort_member AS m SET carried = true FROM truerank.ranking AS x
    WHERE m.season = ANY (v_taken) AND m.member = p_from AND m.cohort IS NOT NULL
      AND x.id = m.season AND x.state = 'final';
    DELETE FROM truerank.cohort_member AS m
    WHERE m.season = ANY (v_taken) AND m.member = p_from AND NOT m.carried;
    -- A copy that is under the old id still is no longer anybody's there.
    WITH gone AS (
        DELETE FROM truerank.standing AS s USING truerank.cohort_member AS o
        WHERE o.season = ANY (v_seasons) AND o.member = p_into
          AND s.ranking = o.cohort AND s.member = p_from
        RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
    )
    SELECT array_agg((g.*)::truerank.changed) INTO v_gone FROM gone AS g;
    PERFORM truerank.log_by_board(v_gone);
END
$$;
