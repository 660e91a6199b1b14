-- set_league: let the seasons of a board be divided into cohorts, or change how they are.
--
-- p_period: all, day, week, month, year or custom. p_from: the label of the first season that is
-- divided; null: the one that runs now, or of a league that is there already, its own. Standings
-- from before are divided by the worker. Another size holds for cohorts made from now on, other
-- numbers of promotions for closes from now on. A member whose tier is no more is in the highest.
-- Tiers and promotions are for periods of which one follows another: not for all and custom.
-- Locks:   the board's row, by trying; writers of before are waited for by divide_leagues.
-- Returns: created, changed or same; board_unknown, period_unknown, season_unknown, or rule_invalid
--          with a size outside 2 to 1000, no tier or more than 20, more promotions and demotions
--          than members, or tiers where none follows.
-- Raises:  55P03 where others hold the board's row for two seconds.
CREATE OR REPLACE FUNCTION truerank.set_league(
    p_board text, p_period text, p_size integer, p_by_key boolean, p_tiers text[],
    p_promote integer, p_demote integer, p_from text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board truerank.board;
    v_old truerank.league;
    v_from bigint;
    v_base bigint;
    v_index integer;
BEGIN
    PERFORM truerank.need_read_committed();
    v_board := truerank.lock_board_alone(p_board, false);
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    ELSIF NOT (p_period = ANY (v_board.seasons)
               OR p_period = 'custom' AND v_board.has_custom_seasons) THEN
        RETURN 'period_unknown';
    ELSIF p_size NOT BETWEEN 2 AND 1000 OR cardinality(p_tiers) NOT BETWEEN 1 AND 20
          OR least(p_promote, p_demote) < 0 OR p_promote::bigint + p_demote > p_size
          OR EXISTS (SELECT FROM unnest(p_tiers) AS t
                     WHERE coalesce(char_length(t), 0) NOT BETWEEN 1 AND 100)
          OR (SELECT count(DISTINCT t) FROM unnest(p_tiers) AS t) < cardinality(p_tiers)
          OR p_period IN ('all', 'custom')
             AND (p_promote + p_demote > 0 OR cardinality(p_tiers) > 1 OR p_from IS NOT NULL) THEN
        RETURN 'rule_invalid';
    END IF;
    SELECT l.* INTO v_old FROM truerank.league AS l
    WHERE l.board_id = v_board.id AND l.period = p_period AND l.dropped_at IS NULL FOR UPDATE;
    v_base := truerank.ranking_id(v_board.id, p_period, -2147483648);
    v_from := v_base;
    IF p_period NOT IN ('all', 'custom') THEN
        v_index := CASE WHEN p_from IS NULL
            THEN truerank.period_index(p_period, v_board.zone, clock_timestamp())
            ELSE (SELECT truerank.label_index(s.period, p_from)
                  FROM truerank.find_season(v_board.id, p_from) AS s WHERE s.period = p_period) END;
        IF v_index IS NULL THEN
            RETURN 'season_unknown';
        END IF;
        v_from := CASE WHEN p_from IS NULL AND v_old.id IS NOT NULL THEN v_old.from_ranking
                       ELSE truerank.ranking_id(v_board.id, p_period, v_index) END;
    END IF;
    IF (v_old.size, v_old.by_key, v_old.tiers, v_old.promote, v_old.demote, v_old.from_ranking)
       IS NOT DISTINCT FROM (p_size, p_by_key, p_tiers, p_promote, p_demote, v_from) THEN
        RETURN 'same';
    END IF;
    -- Writers above READ COMMITTED with an older snapshot fail with 40001: see judge_seasons.
    UPDATE truerank.board AS b SET close_next_at = NULL WHERE b.id = v_board.id;
    IF v_old.id IS NULL THEN
        INSERT INTO truerank.league
            (board_id, period, size, by_key, tiers, promote, demote, from_ranking, to_ranking)
        VALUES (v_board.id, p_period, p_size, p_by_key, p_tiers, p_promote, p_demote, v_from,
                v_base + 4294967296);
    ELSE
        UPDATE truerank.league AS l SET
            size = p_size, by_key = p_by_key, tiers = p_tiers, promote = p_promote,
            demote = p_demote, from_ranking = v_from,
            barrier_xid = CASE WHEN v_from < v_old.from_ranking THEN NULL ELSE l.barrier_xid END,
            scanned_ranking = CASE WHEN v_from < v_old.from_ranking THEN 0
                                   ELSE l.scanned_ranking END,
            scanned_member = CASE WHEN v_from < v_old.from_ranking THEN ''
                                  ELSE l.scanned_member END,
            scanned = l.scanned AND v_from >= v_old.from_ranking
        WHERE l.id = v_old.id;
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board.id, p_actor, 'set_league', p_period, p_reason, jsonb_build_object(
        'size', p_size, 'by_key', p_by_key, 'tiers', p_tiers, 'promote', p_promote,
        'demote', p_demote));
    RETURN CASE WHEN v_old.id IS NULL THEN 'created' ELSE 'changed' END;
END
$$;
