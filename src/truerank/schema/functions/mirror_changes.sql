-- mirror_changes: let the standings in cohorts follow those in their season.
--
-- For whoever changed them, in the same transaction, and for divide_slice. Members new to a season
-- that is divided wait for the worker to divide them: no command waits for a place in a cohort.
-- What a cohort holds is copied from the season's standing, whatever the change was.
-- Locks:   rows of cohorts, which only those write who hold the member's standing in the season
--          locked, or have just added or removed it. So nobody ever waits here, and a version drawn
--          here is higher than that of any change before. But whoever comes back to a cohort
--          waits for who takes the id out of it: see forget_names.
-- Raises:  40001 above READ COMMITTED, where the member was divided since.
CREATE OR REPLACE FUNCTION truerank.mirror_changes(
    p_grp smallint, p_xid xid8, p_changed truerank.changed[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM unnest(p_changed) AS c
        JOIN truerank.cohort_member AS m ON m.season = c.ranking AND m.member = c.member
        FOR SHARE OF m;
    END IF;
    -- A standing that has just been added is nothing that forget_names could wait for, or see.
    PERFORM FROM unnest(p_changed) AS c
    JOIN truerank.cohort_member AS m ON m.season = c.ranking AND m.member = c.member
    WHERE m.cohort IS NOT NULL AND NOT EXISTS (
        SELECT FROM truerank.standing AS x WHERE x.ranking = m.cohort AND x.member = m.member)
    FOR KEY SHARE OF m;
    -- Above READ COMMITTED a row that can't be seen yet is a serialization failure, too.
    INSERT INTO truerank.cohort_member (season, member, first_position)
    SELECT c.ranking, c.member, s.event_position
    FROM unnest(p_changed) AS c
    JOIN truerank.league AS l
      ON l.dropped_at IS NULL AND c.ranking >= l.from_ranking AND c.ranking < l.to_ranking
    JOIN truerank.standing AS s ON s.ranking = c.ranking AND s.member = c.member
    WHERE NOT EXISTS (SELECT FROM truerank.cohort_member AS m
                      WHERE m.season = c.ranking AND m.member = c.member)
    ON CONFLICT (season, member) DO NOTHING;
    DELETE FROM truerank.cohort_member AS m
    USING unnest(p_changed) AS c
    WHERE c.sort_key IS NULL AND m.season = c.ranking AND m.member = c.member
      AND coalesce(m.cohort, 0) = 0  -- IS NULL would have all who wait looked through
      AND NOT EXISTS (SELECT FROM truerank.standing AS s
                      WHERE s.ranking = m.season AND s.member = m.member);

    WITH known AS MATERIALIZED (
        SELECT DISTINCT m.cohort, m.season, m.member, x.version
        FROM unnest(p_changed) AS c
        JOIN truerank.cohort_member AS m ON m.season = c.ranking AND m.member = c.member
        LEFT JOIN truerank.standing AS x ON x.ranking = m.cohort AND x.member = m.member
        WHERE m.cohort IS NOT NULL
    ), put AS (
        INSERT INTO truerank.standing AS s
            (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
        SELECT k.cohort, k.member, o.score, o.ties, nextval('truerank.version'), o.event_at,
               o.event_position, o.moved, o.sort_key
        FROM known AS k
        JOIN truerank.standing AS o ON o.ranking = k.season AND o.member = k.member
        ON CONFLICT (ranking, member) DO UPDATE SET
            score = excluded.score, ties = excluded.ties, version = excluded.version,
            event_at = excluded.event_at, event_position = excluded.event_position,
            moved = excluded.moved, sort_key = excluded.sort_key
        RETURNING s.ranking, s.member, s.sort_key, s.version
    ), gone AS (
        DELETE FROM truerank.standing AS s USING known AS k
        -- The version: whoever repairs holds no standing of the season that isn't there.
        WHERE s.ranking = k.cohort AND s.member = k.member AND s.version = k.version
          AND NOT EXISTS (SELECT FROM truerank.standing AS o
                          WHERE o.ranking = k.season AND o.member = k.member)
        RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version')
    ), changed AS (
        SELECT * FROM put UNION ALL SELECT * FROM gone
    )
    INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
    SELECT r.segment, p_grp, CASE WHEN c.sort_key IS NULL THEN 'd' ELSE 'p' END, c.ranking,
           c.version, p_xid, c.member, coalesce(c.sort_key, '')
    FROM truerank.ring AS r, changed AS c (ranking, member, sort_key, version);
END
$$;
