-- revise_season: correct what a final season came to; each time it is another numbered revision.
--
-- In a transaction of its own at REPEATABLE READ. Events are voided (p_values null) or amended, as
-- in correct_events; without any, members' states of today are brought in: who was banned since
-- gives up the place, who was deleted since has none. Whatever was settled before stays readable
-- under its number. Other final seasons that a corrected event counts in get a revision as well,
-- and open and sealed ones follow as after any correction; all of it or nothing.
-- Repeat:  a correction that is there already adds nothing, and where nothing differs there is no
--          revision.
-- Locks:   the rows of the closed seasons, never waited for; then as correct_events.
-- Returns: one row per revised season: revised or same, its newest revision, how many places
--          differ. Else one row: board_unknown, season_unknown, not_final, merging; or what refused
--          an event (event_unknown, event_conflict, ...), and which: then nothing was changed.
-- Raises:  25001 below REPEATABLE READ; 55P03 and 40001 where others are in the way: repeat it.
CREATE OR REPLACE FUNCTION truerank.revise_season(
    p_board text, p_season text, p_event_ids text[], p_correction_ids text[], p_values numeric[],
    p_ties bigint[], p_actor text, p_reason text
) RETURNS TABLE (outcome text, season text, revision integer, changed bigint, event_id text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_id bigint;
    v_ids bigint[];
    v_refused record;
BEGIN
    PERFORM truerank.need_snapshot();
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    v_id := (SELECT s.ranking FROM truerank.find_season(v_board.id, coalesce(p_season, '')) AS s);
    v_ids := truerank.seasons_of_events(v_board, p_event_ids) || v_id;
    PERFORM FROM truerank.ranking AS r
    WHERE r.id = ANY (v_ids) AND r.state <> 'open'
    ORDER BY r.id FOR NO KEY UPDATE NOWAIT;
    outcome := CASE
        WHEN v_board.id IS NULL THEN 'board_unknown'
        WHEN v_id IS NULL THEN 'season_unknown'
        WHEN NOT EXISTS (SELECT FROM truerank.ranking AS r
                         WHERE r.id = v_id AND r.state = 'final') THEN 'not_final'
        WHEN EXISTS (SELECT FROM truerank.ranking AS r
                     WHERE r.id = ANY (v_ids) AND r.state = 'final'
                       AND truerank.merges_under_way(
                               v_board, truerank.season_of_ranking(v_board, r.id)))
            THEN 'merging' END;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    BEGIN
        SELECT c.ord, c.outcome, c.code INTO v_refused
        FROM truerank.correct_events(
            p_board, coalesce(p_event_ids, '{}'), p_correction_ids, p_values, p_ties, p_actor,
            p_reason, '{}') AS c
        WHERE c.outcome IN ('refused', 'conflict') ORDER BY c.ord LIMIT 1;
        IF FOUND THEN
            RAISE SQLSTATE 'TR002';
        END IF;
    EXCEPTION WHEN SQLSTATE 'TR002' THEN  -- and what was corrected is not
        outcome := coalesce(v_refused.code, 'event_conflict');
        event_id := p_event_ids[v_refused.ord];
        RETURN NEXT;
        RETURN;
    END;
    RETURN QUERY
    SELECT n.outcome, r.season, n.revision, n.changed, NULL::text
    FROM (SELECT DISTINCT unnest(v_ids) AS id) AS i
    JOIN truerank.ranking AS r ON r.id = i.id AND r.state = 'final'
    CROSS JOIN LATERAL truerank.revise_ranking(
        v_board, truerank.season_of_ranking(v_board, r.id), p_actor, p_reason) AS n
    ORDER BY r.id <> v_id, r.id;
END
$$;
