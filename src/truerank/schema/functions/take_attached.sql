-- take_attached: bring a board up to what rows of an attached table say now.
--
-- p_old are facts that the table no longer holds, p_new those it holds now; a row that changed is
-- in both. In the caller's transaction.
-- Returns: how many new facts were applied, were known, or were refused and parked.
-- Raises:  TR002 for a refusal, where the attachment says raise; 40001 at REPEATABLE READ and
--          above where another transaction worked on the same event id.
CREATE OR REPLACE FUNCTION truerank.take_attached(
    p_attachment truerank.attachment, p_old truerank.attached_fact[],
    p_new truerank.attached_fact[], p_actor text, p_reason text,
    OUT applied bigint, OUT duplicate bigint, OUT parked bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    v_key text;
    v_item truerank.attached_item[];
BEGIN
    SELECT b.key INTO v_key FROM truerank.board AS b
    WHERE b.id = p_attachment.board_id AND b.deleted_at IS NULL;
    v_item := truerank.attached_items(p_attachment.board_id, p_old, p_new);
    IF v_key IS NULL THEN
        SELECT array_agg((i.ord, i.fact, i.uuid, i.action, i.last, i.withdrawn, NULL, NULL,
                          'refused', 'board_unknown')::truerank.attached_item ORDER BY i.ord)
        INTO v_item FROM unnest(v_item) AS i;
    ELSE
        v_item := truerank.attached_incomplete(p_attachment, v_key, v_item);
        IF cardinality(p_old) > 0 THEN
            v_item := truerank.attached_withdraw(p_attachment, v_key, v_item, p_actor, p_reason);
        END IF;
        IF cardinality(p_new) > 0 THEN
            v_item := truerank.attached_submit(p_attachment, v_key, v_item);
        END IF;
    END IF;

    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- An id that was used before may have been withdrawn since our snapshot: then the row of
        -- its revision is there and can't be seen, which fails here.
        INSERT INTO truerank.revision (board_id, event_uuid)
        SELECT DISTINCT p_attachment.board_id, i.uuid FROM unnest(v_item) AS i
        WHERE i.outcome = 'duplicate' OR i.code = 'event_conflict' ORDER BY 2
        ON CONFLICT DO NOTHING;
    END IF;
    PERFORM truerank.attached_park(p_attachment, v_key, v_item);
    SELECT count(*) FILTER (WHERE i.outcome = 'applied'),
           count(*) FILTER (WHERE i.outcome = 'duplicate'),
           count(*) FILTER (WHERE i.code IS NOT NULL)
    INTO applied, duplicate, parked FROM unnest(v_item) AS i WHERE i.action <> 'void';
END
$$;
