-- judge_forgotten: refuse events whose ids belong to events that were forgotten.
--
-- For boards whose history has an end. Events that came with a time of their own leave no id
-- behind: their repeats bring the same time, and are refused for it.
-- Returns: the codes, in the caller's order.
CREATE OR REPLACE FUNCTION truerank.judge_forgotten(
    p_board truerank.board, p_event truerank.prepared_events
) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(coalesce(u.code, CASE WHEN f.kind = 'f' THEN 'event_forgotten' END)
                     ORDER BY u.ord)
    FROM unnest(p_event.codes, p_event.uuids) WITH ORDINALITY AS u (code, uuid, ord)
    LEFT JOIN LATERAL (
        SELECT e.kind FROM truerank.event AS e
        WHERE u.code IS NULL AND e.board_id = p_board.id AND e.event_uuid = u.uuid
        OFFSET 0  -- one look at the key per event
    ) AS f ON true
$$;
