-- settlement_digest_from_events: the digest that a settlement should have, from events alone.
--
-- Every member's score is folded from its events as they counted when the revision was made:
-- without what was voided by then, with the values amended by then, for whom they counted then, and
-- also where the member was deleted since. Ranks are numbered anew. Of the settlement itself only
-- the stand-ins, and who was kept out, are read. Memory is bounded by work_mem: what doesn't fit is
-- sorted on disk. About 0.1 ms a member, and it reads all events of the board.
-- Returns: the digest, to be equal to the one that is stored; how many members; and whether the
--          board still has all events of the season. Where it hasn't (retention), what is left of
--          them was summed up, and a digest that differs proves nothing. No row where there is no
--          such settlement.
CREATE OR REPLACE FUNCTION truerank.settlement_digest_from_events(
    p_ranking bigint, p_revision integer
) RETURNS TABLE (digest bytea, population bigint, complete boolean)
-- To plan a fold costs thirty times as much as to do it.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    v_board truerank.board;
    v_season truerank.season;
    v_settlement truerank.settlement;
    v_slice record;
    v_row_bytes integer;
BEGIN
    SELECT s.* INTO v_settlement FROM truerank.settlement AS s
    WHERE s.ranking = p_ranking AND s.revision = p_revision;
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_ranking >> 36;
    IF v_settlement.ranking IS NULL OR v_board.id IS NULL THEN
        RETURN;
    END IF;
    v_season := truerank.season_of_ranking(v_board, p_ranking);
    v_row_bytes := 8 * (1 + cardinality(v_board.tie_names));
    complete := v_season.starts_at >= v_board.history_from;
    digest := truerank.settlement_seed(p_ranking);
    population := 0;
    FOR v_slice IN
        WITH owner AS (
            SELECT DISTINCT coalesce(n.member, x.member) AS member
            FROM (
                SELECT e.member FROM truerank.event AS e
                WHERE e.board_id = v_board.id AND e.kind = 's'
                  AND e.occurred_at >= v_season.starts_at AND e.occurred_at < v_season.ends_at
                UNION
                SELECT o.member FROM truerank.opening AS o WHERE o.ranking = p_ranking
            ) AS x
            LEFT JOIN truerank.settlement_name AS n
              ON n.ranking = p_ranking AND n.revision = p_revision AND n.name = x.member
        ), folded AS MATERIALIZED (
            SELECT o.member, f.sort_key
            FROM owner AS o
            CROSS JOIN LATERAL truerank.fold_events(
                v_board, p_ranking,
                o.member || ARRAY(SELECT n.name FROM truerank.settlement_name AS n
                                  WHERE n.ranking = p_ranking AND n.revision = p_revision
                                    AND n.member = o.member),
                v_season.starts_at, v_season.ends_at, v_settlement.corrected_to,
                v_settlement.settled_at) AS f
            WHERE NOT EXISTS (SELECT FROM truerank.settlement_excluded AS x
                              WHERE x.ranking = p_ranking AND x.revision = p_revision
                                AND x.member = o.member AND x.score IS NOT NULL)
        ), numbered AS (
            SELECT f.member, f.sort_key,
                   row_number() OVER (ORDER BY f.sort_key, f.member COLLATE "C") AS ordinal,
                   rank() OVER by_score AS competition, dense_rank() OVER by_score AS dense
            FROM folded AS f
            WINDOW by_score AS (ORDER BY substr(f.sort_key, 1, v_row_bytes))
        )
        SELECT string_agg(truerank.settlement_bytes(
                   m.ordinal, m.competition, m.dense,
                   -- Who should have had no place has no stand-in, and so the digest differs.
                   coalesce(r.stand_in, ''), m.sort_key),
                   ''::bytea ORDER BY m.ordinal) AS bytes,
               count(*) AS rows
        FROM numbered AS m
        LEFT JOIN truerank.settlement_row AS r
          ON r.ranking = p_ranking AND r.revision = p_revision AND r.member = m.member
        GROUP BY (m.ordinal - 1) / 1000
        ORDER BY (m.ordinal - 1) / 1000
    LOOP
        digest := sha256(digest || v_slice.bytes);
        population := population + v_slice.rows;
    END LOOP;
    RETURN NEXT;
END
$$;
