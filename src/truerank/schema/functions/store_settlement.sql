-- store_settlement: store a revision of a season's final standings, as this snapshot has them.
--
-- Members who aren't active take no place, and nobody else's; they are stored with why. What a
-- member is called in the digest stays the same in all revisions, also where its id was merged into
-- another one since.
-- Returns: when.
CREATE OR REPLACE FUNCTION truerank.store_settlement(
    p_board truerank.board, p_season truerank.season, p_revision integer, p_actor text,
    p_reason text
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint := p_season.ranking;
    -- Of the snapshot, or a moment later: bans that have ended by now keep nobody out, also those
    -- that nobody has lifted yet.
    v_now timestamptz := clock_timestamp();
    v_row_bytes integer := 8 * (1 + cardinality(p_board.tie_names));
    -- As an array, which is hashed; a join would not keep the index's order.
    v_withheld text[] := ARRAY(
        SELECT s.member FROM truerank.member_state AS s
        WHERE s.board_id IN (0, p_board.id)
          AND s.state IN ('hidden', 'banned', 'merged')  -- what the index has
          AND truerank.state_at(s, v_now) <> 'active'
          AND EXISTS (SELECT FROM truerank.standing AS x
                      WHERE x.ranking = v_id AND x.member = s.member));
    -- Forgotten at the end, so that nothing leads from a stand-in to a member but the row. A random
    -- number for each row would cost as much as to sort them.
    v_secret bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
    v_settlement truerank.settlement;
BEGIN
    INSERT INTO truerank.settlement_row
        (ranking, revision, ordinal, competition, dense, score, stand_in, left_at, member,
         sort_key, ties)
    SELECT v_id, p_revision, p.ordinal,
           max(CASE WHEN p.better THEN p.ordinal END) OVER so_far,
           count(*) FILTER (WHERE p.better) OVER so_far,
           p.score,
           CASE WHEN p_revision > 1 THEN coalesce((
                    SELECT r.stand_in FROM truerank.settlement_row AS r
                    WHERE r.ranking = v_id AND r.revision = p_revision - 1
                      AND r.member = p.member),
                    truerank.former_stand_in(v_id, p_revision, p.member),
                    substr(sha256(v_secret || int8send(p.ordinal)), 1, 16))
                ELSE substr(sha256(v_secret || int8send(p.ordinal)), 1, 16) END,
           NULL, p.member, p.sort_key, p.ties
    FROM (
        SELECT s.score, s.member, s.sort_key, s.ties, row_number() OVER in_order AS ordinal,
               substr(s.sort_key, 1, v_row_bytes) IS DISTINCT FROM
                   lag(substr(s.sort_key, 1, v_row_bytes)) OVER in_order AS better
        FROM truerank.standing AS s
        WHERE s.ranking = v_id
          AND (cardinality(v_withheld) = 0 OR s.member <> ALL (v_withheld))
        WINDOW in_order AS (ORDER BY s.sort_key, s.member)
    ) AS p
    -- The same order again, so that nothing is sorted.
    WINDOW so_far AS (ORDER BY p.sort_key, p.member ROWS UNBOUNDED PRECEDING);

    INSERT INTO truerank.settlement_excluded (ranking, revision, member, why, score)
    SELECT v_id, p_revision, s.member, (
               SELECT w.why FROM (
                   SELECT truerank.state_at(m, v_now) AS why FROM truerank.member_state AS m
                   WHERE m.member = s.member AND m.board_id IN (0, p_board.id)) AS w
               WHERE w.why IN ('hidden', 'banned', 'merged')
               ORDER BY array_position(ARRAY['merged', 'banned', 'hidden'], w.why) LIMIT 1),
           s.score
    FROM truerank.standing AS s WHERE s.ranking = v_id AND s.member = ANY (v_withheld)
    UNION ALL
    SELECT DISTINCT v_id, p_revision, m.member, 'deleted', NULL::bigint
    FROM truerank.member_state AS m
    WHERE m.board_id IN (0, p_board.id) AND m.state = 'deleted'
      AND EXISTS (SELECT FROM truerank.event AS e
                  WHERE e.board_id = p_board.id AND e.member = m.member AND e.kind = 's'
                    AND e.occurred_at >= p_season.starts_at AND e.occurred_at < p_season.ends_at)
      AND NOT EXISTS (SELECT FROM truerank.standing AS s
                      WHERE s.ranking = v_id AND s.member = m.member);
    INSERT INTO truerank.settlement_name (ranking, revision, name, member)
    SELECT v_id, p_revision, m.id, m.merged_into FROM truerank.member AS m
    WHERE m.merged_into IS NOT NULL
      AND (EXISTS (SELECT FROM truerank.event AS e
                   WHERE e.board_id = p_board.id AND e.member = m.id
                     AND e.occurred_at >= p_season.starts_at AND e.occurred_at < p_season.ends_at)
           -- Its events may be forgotten.
           OR EXISTS (SELECT FROM generate_series(1, p_revision - 1) AS v (revision)
                      JOIN truerank.settlement_row AS r
                        ON r.ranking = v_id AND r.revision = v.revision AND r.member = m.id));

    SELECT d.population, d.different, d.total, d.digest
    INTO v_settlement.population, v_settlement.different, v_settlement.total, v_settlement.digest
    FROM truerank.settlement_digest(v_id, p_revision) AS d;
    INSERT INTO truerank.settlement
        (ranking, revision, settled_at, actor, reason, corrected_to, population, different, total,
         changed, digest)
    SELECT v_id, p_revision, v_now, p_actor, p_reason, nextval('truerank.position'),
           v_settlement.population, v_settlement.different, v_settlement.total,
           CASE WHEN p_revision = 1 THEN 0 ELSE (
               SELECT truerank.count_settlement_changes(v_id, p_revision)) END,
           v_settlement.digest
    RETURNING settled_at INTO v_settlement.settled_at;
    PERFORM truerank.give_awards(p_board, p_season, p_revision);
    PERFORM truerank.settle_cohorts(p_board, p_season, p_revision);
    PERFORM truerank.queue_settlement(p_board, p_season, p_revision);
    RETURN v_settlement.settled_at;
END
$$;
