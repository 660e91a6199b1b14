-- attached_incomplete: refuse what is about rows whose events are forgotten, or about to be.
--
-- Of a forgotten event nothing tells that it counts but the time it had, in the row or in what was
-- parked of it, or a stub or a revision that names it. To take it for none would count its row
-- twice, or count a row that is gone.
-- Returns: the items, refused with history_incomplete where it is so.
CREATE OR REPLACE FUNCTION truerank.attached_incomplete(
    p_attachment truerank.attachment, p_key text, p_item truerank.attached_item[]
) RETURNS truerank.attached_item[]
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board := truerank.lock_board(p_key);
    v_item truerank.attached_item[];
BEGIN
    IF isfinite(v_board.history_from) IS NOT TRUE THEN
        RETURN p_item;
    END IF;
    SELECT array_agg((i.ord, i.fact, i.uuid, i.action, i.last, i.withdrawn, NULL, i.given,
                      CASE WHEN j.is_so THEN 'refused' END,
                      CASE WHEN j.is_so THEN 'history_incomplete' END
                      )::truerank.attached_item ORDER BY i.ord)
    INTO v_item
    FROM unnest(p_item) AS i
    LEFT JOIN truerank.event AS e
      ON (i.action <> 'submit' OR i.last > 0) AND e.board_id = v_board.id
     AND e.event_uuid = truerank.event_uuid(
             truerank.attached_id((i.fact).event_id, i.last))
    CROSS JOIN LATERAL (SELECT CASE
        WHEN i.withdrawn THEN false
        WHEN e.event_uuid IS NULL AND i.last > 0 THEN true
        WHEN i.action = 'submit' THEN false
        WHEN e.event_uuid IS NOT NULL THEN e.kind = 'f' OR e.occurred_at < v_board.history_from
        ELSE coalesce(i.given < v_board.history_from, false) OR EXISTS (
            SELECT FROM truerank.parked AS p
            JOIN truerank.attachment AS a ON a.id = p.attachment_id
            WHERE p.event_uuid = i.uuid AND p.done = 'taken' AND a.board_id = v_board.id)
        END AS is_so) AS j;
    RETURN v_item;
END
$$;
