-- attached_park: keep what the board did not take, or raise; and close what is settled by now.
--
-- One open entry per event id: what an id was refused for last.
-- Raises:  TR002 where the attachment says so; the message names the code, the event id and how
--          many rows more there are, the detail is the code alone.
CREATE OR REPLACE FUNCTION truerank.attached_park(
    p_attachment truerank.attachment, p_key text, p_item truerank.attached_item[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_first truerank.attached_item;
    v_refused integer;
BEGIN
    IF EXISTS (SELECT FROM truerank.parked AS p
               WHERE p.attachment_id = p_attachment.id AND p.done_at IS NULL) THEN
        UPDATE truerank.parked AS p SET done = 'superseded', done_at = clock_timestamp()
        FROM unnest(p_item) AS i
        WHERE p.attachment_id = p_attachment.id AND p.done_at IS NULL AND p.event_uuid = i.uuid
          AND i.outcome IN ('applied', 'duplicate', 'voided');
    END IF;
    SELECT count(*) INTO v_refused FROM unnest(p_item) AS i WHERE i.code IS NOT NULL;
    IF v_refused = 0 THEN
        RETURN;
    END IF;

    IF p_attachment.on_refusal = 'raise' THEN
        SELECT i.* INTO v_first FROM unnest(p_item) AS i
        WHERE i.code IS NOT NULL ORDER BY i.ord LIMIT 1;
        RAISE EXCEPTION USING ERRCODE = 'TR002', DETAIL = v_first.code, MESSAGE = format(
            'board %L refuses event %L of %s: %s%s', p_key, (v_first.fact).event_id,
            p_attachment.relation, v_first.code,
            CASE WHEN v_refused > 1 THEN format(' (and %s rows more)', v_refused - 1) ELSE '' END);
    END IF;

    INSERT INTO truerank.parked AS p
        (attachment_id, action, event_uuid, event_id, member, value, occurred_at, ties, code,
         message)
    SELECT p_attachment.id, i.action, i.uuid, (i.fact).event_id, (i.fact).member, (i.fact).value,
           -- A row without a time counts at the time when it came, whenever it is taken in.
           CASE WHEN p_attachment.occurred_at IS NULL AND i.action = 'submit'
                THEN coalesce(i.given, clock_timestamp()) ELSE (i.fact).occurred_at END,
           (i.fact).ties, i.code,
           CASE i.code
               WHEN 'event_conflict' THEN 'the event id names another event of the board'
               WHEN 'event_void' THEN 'a person voided the event of this row'
               WHEN 'history_incomplete' THEN
                   'the event of this row is older than what the board remembers, and stays'
               ELSE format('board %s: %s', p_key, i.code) END
    FROM (SELECT i.*, row_number() OVER (
              PARTITION BY coalesce(i.uuid::text, i.ord::text) ORDER BY i.ord DESC) AS latest
          FROM unnest(p_item) AS i WHERE i.code IS NOT NULL) AS i
    WHERE i.latest = 1
    ORDER BY i.ord
    ON CONFLICT (attachment_id, event_uuid) WHERE done_at IS NULL DO UPDATE SET
        action = excluded.action, event_id = excluded.event_id, member = excluded.member,
        value = excluded.value, occurred_at = excluded.occurred_at, ties = excluded.ties,
        code = excluded.code, message = excluded.message, tries = p.tries + 1,
        tried_at = clock_timestamp();
END
$$;
