-- prepare_events: give every event its UUID, its position and its time, and judge what it says.
--
-- Positions are drawn in the caller's order, before anything is sorted. The clock is read once,
-- and is the server's at this moment: the caller's transaction may have begun long ago.
-- Text of the form 8-4-4-4-12 hexadecimal digits is that UUID; any other text is kept beside a
-- UUID made from it.
-- Returns: arrays in the caller's order; codes holds why an event is refused, or null.
CREATE OR REPLACE FUNCTION truerank.prepare_events(
    p_board truerank.board, p_event_ids text[], p_members text[], p_values numeric[],
    p_occurred_at timestamptz[], p_ties bigint[], p_metadata jsonb[], p_expected_operator text
) RETURNS truerank.prepared_events
LANGUAGE plpgsql AS $$
DECLARE
    v_event truerank.prepared_events;
    v_tie_n integer := cardinality(p_board.tie_names);
    v_at_max timestamptz;
    v_scaled numeric[] := p_values;
    v_uuids uuid[];
BEGIN
    -- Where all ids are UUIDs, reading them at once costs a quarter of examining each text.
    BEGIN
        v_uuids := p_event_ids::uuid[];
    EXCEPTION WHEN invalid_text_representation THEN
        v_uuids := NULL;
    END;
    IF p_board.decimals > 0 THEN
        SELECT array_agg(truerank.in_last_place(v, p_board.decimals) ORDER BY ord) INTO v_scaled
        FROM unnest(p_values) WITH ORDINALITY AS u (v, ord);
    END IF;
    v_event.received_at := clock_timestamp();
    v_at_max := v_event.received_at + p_board.future_max;
    SELECT array_agg(CASE WHEN d.is_uuid THEN d.event_id::uuid
                          ELSE truerank.hashed_uuid(d.event_id) END),
           array_agg(CASE WHEN NOT d.is_uuid THEN d.event_id END),
           array_agg(d.position), array_agg(d.at), array_agg(d.code),
           -- Of refused events too: what was stored before the rules changed is looked up by it.
           array_agg(CASE WHEN d.code IS NULL OR d.value = trunc(d.value) AND d.value BETWEEN
                         -9223372036854775808 AND 9223372036854775807 THEN d.value::bigint END),
           array_agg(d.at) FILTER (WHERE d.code IS NULL)
    INTO v_event.uuids, v_event.texts, v_event.positions, v_event.at, v_event.codes,
         v_event.values, v_event.candidate_at
    FROM (
        SELECT u.event_id,
               -- What PostgreSQL also reads as a UUID, in braces or without hyphens, is text.
               CASE WHEN u.uuid IS NULL THEN truerank.is_uuid(u.event_id)
                    ELSE u.uuid::text = lower(u.event_id COLLATE "C") END AS is_uuid,
               nextval('truerank.position') AS position,
               coalesce(u.occurred_at, v_event.received_at) AS at,
               u.value,
               CASE
                   WHEN NOT p_board.accepting THEN 'board_closed'
                   WHEN p_expected_operator <> p_board.operator THEN 'operator_mismatch'
                   WHEN u.event_id IS NULL OR char_length(u.event_id) NOT BETWEEN 1 AND 200
                       THEN 'event_id_invalid'
                   WHEN u.member IS NULL OR char_length(u.member) NOT BETWEEN 1 AND 200
                       THEN 'member_invalid'
                   WHEN u.value IS NULL THEN 'value_invalid'
                   WHEN u.value <> trunc(u.value) THEN 'value_too_precise'
                   WHEN u.value NOT BETWEEN p_board.value_min AND p_board.value_max
                       THEN 'value_out_of_range'
                   WHEN NOT isfinite(u.occurred_at) THEN 'occurred_at_invalid'
                   WHEN u.occurred_at < p_board.earliest_at THEN 'occurred_at_too_early'
                   WHEN u.occurred_at > v_at_max THEN 'occurred_at_in_future'
                   WHEN coalesce(u.occurred_at, v_event.received_at) >= p_board.latest_at
                       THEN 'occurred_at_too_late'
                   -- Its id may be forgotten: to take it could count it twice.
                   WHEN u.occurred_at < greatest(
                            v_event.received_at - p_board.retention, p_board.history_from)
                       THEN 'occurred_at_too_old'
                   WHEN octet_length(u.metadata::text) > 1024 THEN 'metadata_too_large'
                   WHEN v_tie_n > 0 THEN truerank.judge_ties(
                       p_board, p_ties[(u.ord - 1) * v_tie_n + 1 : u.ord * v_tie_n])
               END AS code
        FROM unnest(p_event_ids, p_members, v_scaled, p_occurred_at, p_metadata, v_uuids)
            WITH ORDINALITY AS u (event_id, member, value, occurred_at, metadata, uuid, ord)
        OFFSET 0  -- so that nothing of this is computed twice
    ) AS d;
    RETURN v_event;
END
$$;
