-- attached_broken: park rows that could not be read as events: a column is gone, the condition
-- fails. p_ids null: not even their ids could be read, and one entry stands for the statement.
CREATE OR REPLACE FUNCTION truerank.attached_broken(
    p_attachment truerank.attachment, p_op text, p_message text, p_ids text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO truerank.parked AS p
        (attachment_id, action, event_uuid, event_id, code, message)
    SELECT DISTINCT ON (truerank.event_uuid(i.id)) p_attachment.id,
           CASE p_op WHEN 'INSERT' THEN 'submit' WHEN 'UPDATE' THEN 'correct' ELSE 'void' END,
           truerank.event_uuid(i.id), i.id, 'attachment_broken', p_message
    FROM unnest(coalesce(p_ids, ARRAY[NULL::text])) AS i (id)
    ORDER BY truerank.event_uuid(i.id)
    ON CONFLICT (attachment_id, event_uuid) WHERE done_at IS NULL DO UPDATE SET
        action = excluded.action, code = excluded.code, message = excluded.message,
        tries = p.tries + 1, tried_at = clock_timestamp();
END
$$;
