-- settle_season: store the final standings of a sealed season, and make it final; all or nothing.
--
-- In a transaction of its own at REPEATABLE READ, begun after pass_barrier said passed. Ranks in
-- all three numberings, population, totals and digest are of that one snapshot.
-- Repeat:  a season is settled once; then it says final. Who comes second meanwhile is turned away.
-- Locks:   the season's row, never waited for. Who corrects an event of the season, or takes a
--          member's past away, holds it too.
-- Returns: one row: settled or final, with the revision and its time; held, with until when;
--          not_sealed, no_barrier; merging, while two members are being made one;
--          dividing, while members have yet to be put into cohorts (see divide_season);
--          earlier_open, before the season is final that decides their tiers (see season_before);
--          board_unknown, season_unknown.
-- Raises:  25001 below REPEATABLE READ; 55P03 and 40001 where others are in the way: repeat it.
CREATE OR REPLACE FUNCTION truerank.settle_season(
    p_board text, p_season text, p_actor text, p_reason text
) RETURNS TABLE (outcome text, revision integer, at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_ranking truerank.ranking;
    v_season truerank.season;
    v_id bigint;
BEGIN
    PERFORM truerank.need_snapshot();
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    outcome := CASE WHEN v_board.id IS NULL THEN 'board_unknown' END;
    IF outcome IS NULL THEN
        v_id := (SELECT s.ranking
                 FROM truerank.find_season(v_board.id, coalesce(p_season, '')) AS s);
        outcome := CASE WHEN v_id IS NULL THEN 'season_unknown' END;
    END IF;
    IF outcome IS NULL THEN
        SELECT r.* INTO v_ranking FROM truerank.ranking AS r
        WHERE r.id = v_id FOR NO KEY UPDATE NOWAIT;
        revision := v_ranking.revision;
        at := CASE v_ranking.state WHEN 'final' THEN v_ranking.settled_at
                                   ELSE v_ranking.hold_until END;
        outcome := CASE
            WHEN v_ranking.state = 'final' THEN 'final'
            WHEN v_ranking.state IS DISTINCT FROM 'sealed' THEN 'not_sealed'
            WHEN v_ranking.barrier_at IS NULL THEN 'no_barrier'
            WHEN clock_timestamp() < v_ranking.hold_until THEN 'held' END;
    END IF;
    IF outcome IS NULL THEN
        v_season := truerank.season_of_ranking(v_board, v_id);
        outcome := CASE WHEN truerank.merges_under_way(v_board, v_season) THEN 'merging'
                        WHEN truerank.season_before(v_id) IS NOT NULL THEN 'earlier_open'
                        WHEN truerank.undivided(v_id) THEN 'dividing' END;
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    outcome := 'settled';
    revision := 1;
    at := truerank.store_settlement(v_board, v_season, 1, p_actor, p_reason);
    UPDATE truerank.ranking AS r SET state = 'final', settled_at = at, revision = 1
    WHERE r.id = v_id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    SELECT v_board.id, p_actor, 'settle_season', p_season, p_reason, jsonb_build_object(
        'population', s.population, 'digest', encode(s.digest, 'hex'))
    FROM truerank.settlement AS s WHERE s.ranking = v_id AND s.revision = 1;
    RETURN NEXT;
END
$$;
