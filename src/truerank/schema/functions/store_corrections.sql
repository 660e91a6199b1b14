-- store_corrections: insert the corrections that are new, and tell what the others really are.
--
-- Repeats are looked up in a second statement, as in store_events; a correction of the same call
-- that came before counts. Each new one leaves a row in the audit.
CREATE OR REPLACE FUNCTION truerank.store_corrections(
    p_board truerank.board, p_correction truerank.correction[], p_void boolean,
    p_actor text, p_reason text
) RETURNS truerank.correction[]
LANGUAGE plpgsql AS $$
DECLARE
    v_kind "char" := CASE WHEN p_void THEN 'v' ELSE 'a' END;
    v_new bigint[];
    v_correction truerank.correction[];
BEGIN
    WITH stored AS (
        INSERT INTO truerank.event
            (board_id, event_uuid, event_text, kind, target, member, value, ties, occurred_at,
             occurred_given, received_at, position, xid, metadata)
        SELECT p_board.id, c.uuid, c.text, v_kind, c.target, c.member, c.value, c.ties, c.at,
               false, clock_timestamp(), c.position, pg_current_xact_id(), NULL
        FROM unnest(p_correction) AS c
        WHERE c.code IS NULL
        ORDER BY c.target, c.uuid, c.position
        ON CONFLICT DO NOTHING  -- the same id, or a second void of one event
        RETURNING position
    )
    SELECT array_agg(s.position) INTO v_new FROM stored AS s;

    SELECT array_agg((c.ord, c.uuid, c.text, c.target, c.event_id, c.member, c.at, c.value, c.ties,
            c.position,
            CASE WHEN c.code IS NOT NULL THEN 'refused'
                 WHEN c.position = ANY (v_new) THEN 'applied'
                 WHEN e.kind = v_kind AND e.target = c.target AND e.value = c.value
                      AND e.ties IS NOT DISTINCT FROM c.ties THEN 'duplicate'
                 ELSE 'conflict' END,
            c.code, e.xid)::truerank.correction ORDER BY c.ord)
    INTO v_correction
    FROM unnest(p_correction) AS c
    LEFT JOIN LATERAL (
        SELECT x.kind, x.target, x.value, x.ties, x.xid FROM truerank.event AS x
        WHERE p_void AND x.board_id = p_board.id AND x.target = c.target AND x.kind = 'v'
        UNION ALL
        SELECT x.kind, x.target, x.value, x.ties, x.xid FROM truerank.event AS x
        WHERE NOT p_void AND x.board_id = p_board.id AND x.event_uuid = c.uuid
    ) AS e ON c.code IS NULL;

    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    SELECT p_board.id, p_actor, CASE WHEN p_void THEN 'void' ELSE 'amend' END, c.event_id,
           p_reason, CASE WHEN p_void THEN '{}'::jsonb ELSE jsonb_build_object(
               'value', truerank.in_units(c.value, p_board.decimals)::text) END
    FROM unnest(v_correction) AS c WHERE c.outcome = 'applied' ORDER BY c.ord;
    IF p_void AND EXISTS (SELECT FROM truerank.webhook AS w WHERE 'event.voided' = ANY (w.kinds)) THEN
        PERFORM truerank.queue_deliveries(
            'event.voided', p_board.id, array_agg(c.member ORDER BY c.ord),
            array_agg(jsonb_build_object(
                'board', p_board.key, 'event_id', c.event_id,
                'event_at', truerank.instant_text(c.at)) ORDER BY c.ord))
        FROM unnest(v_correction) AS c WHERE c.outcome = 'applied';
    END IF;
    RETURN v_correction;
END
$$;
