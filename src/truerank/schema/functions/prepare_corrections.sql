-- prepare_corrections: find the events that corrections name, and judge the new values.
CREATE OR REPLACE FUNCTION truerank.prepare_corrections(
    p_board truerank.board, p_event_ids text[], p_correction_ids text[], p_values numeric[],
    p_ties bigint[]
) RETURNS truerank.correction[]
LANGUAGE plpgsql AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
    v_correction truerank.correction[];
BEGIN
    SELECT array_agg((u.ord::integer,
        CASE WHEN p_values IS NULL THEN gen_random_uuid()
             ELSE truerank.correction_uuid(u.correction_id) END,
        CASE WHEN p_values IS NOT NULL THEN u.correction_id END,
        e.event_uuid, u.event_id, e.member, e.occurred_at,
        CASE WHEN j.code IS NULL THEN coalesce(j.scaled, 0)::bigint END,
        CASE WHEN v_tie_n > 0 AND p_values IS NOT NULL THEN
            p_ties[(u.ord - 1) * v_tie_n + 1 : u.ord * v_tie_n] END,
        nextval('truerank.position'),
        CASE WHEN j.code IS NULL THEN NULL ELSE 'refused' END, j.code, NULL
        )::truerank.correction ORDER BY u.ord)
    INTO v_correction
    FROM unnest(p_event_ids, p_correction_ids, p_values)
        WITH ORDINALITY AS u (event_id, correction_id, value, ord)
    -- OFFSET 0: one look at the key per event, whatever the planner thinks of the table's size.
    LEFT JOIN LATERAL (
        SELECT x.event_uuid, x.member, x.occurred_at FROM truerank.event AS x
        WHERE x.board_id = p_board.id AND x.kind = 's'
          AND x.event_uuid = CASE WHEN truerank.is_uuid(u.event_id) THEN u.event_id::uuid
                                  ELSE truerank.hashed_uuid(u.event_id) END
          AND x.event_text IS NOT DISTINCT FROM
              CASE WHEN NOT truerank.is_uuid(u.event_id) THEN u.event_id END
        OFFSET 0
    ) AS e ON true
    CROSS JOIN LATERAL (
        SELECT truerank.in_last_place(u.value, p_board.decimals) AS scaled,
               CASE
                   WHEN e.event_uuid IS NULL THEN 'event_unknown'
                   WHEN e.occurred_at < p_board.history_from THEN 'history_incomplete'
                   WHEN p_values IS NULL THEN NULL
                   WHEN u.correction_id IS NULL
                        OR char_length(u.correction_id) NOT BETWEEN 1 AND 200
                       THEN 'correction_id_invalid'
                   WHEN u.value IS NULL THEN 'value_invalid'
                   WHEN truerank.in_last_place(u.value, p_board.decimals)
                        <> trunc(truerank.in_last_place(u.value, p_board.decimals))
                       THEN 'value_too_precise'
                   WHEN truerank.in_last_place(u.value, p_board.decimals)
                        NOT BETWEEN p_board.value_min AND p_board.value_max
                       THEN 'value_out_of_range'
                   WHEN v_tie_n > 0 THEN truerank.judge_ties(
                       p_board, p_ties[(u.ord - 1) * v_tie_n + 1 : u.ord * v_tie_n])
               END AS code
    ) AS j;
    RETURN v_correction;
END
$$;
