-- void_events: take events out of every standing, as if they had never happened.
--
-- The events stay; a row of kind v names each. Standings, reached-at and seasons follow from what
-- remains; where nothing does, the standing goes. In the caller's transaction.
-- Repeat:  an event that is void already answers duplicate.
-- Locks:   the board's advisory lock (shared), events by id, standings by ranking and member.
-- Returns: one row per event id and season, like submit_scores; refused with event_unknown, or
--          season_final where a season of the event is settled. A sealed one takes corrections.
CREATE OR REPLACE FUNCTION truerank.void_events(
    p_board text, p_event_ids text[], p_actor text, p_reason text
) RETURNS SETOF truerank.receipt
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM truerank.correct_events(
        p_board, p_event_ids, NULL, NULL, NULL, p_actor, p_reason);
END
$$;
