-- change_webhook: give a receiver another address, tell it of other things, or send it nothing.
--
-- Null leaves as it is. Enabled again, it is sent all that happened meanwhile.
-- Returns: changed, webhook_unknown.
-- Raises:  check_violation where the settings make no sense.
CREATE OR REPLACE FUNCTION truerank.change_webhook(
    p_name text, p_url text, p_kinds text[], p_enabled boolean, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer;
BEGIN
    -- Before the table does: its message, which servers log, would show the row, and so the secret.
    IF char_length(p_url) NOT BETWEEN 1 AND 2000 OR cardinality(p_kinds) = 0
       OR NOT p_kinds <@ ARRAY['award.given', 'award.withdrawn', 'season.final', 'season.revised',
                               'member.erased', 'event.voided'] THEN
        RAISE check_violation USING MESSAGE = 'there is no such kind, or this is no URL';
    END IF;
    UPDATE truerank.webhook AS w SET
        url = coalesce(p_url, w.url), kinds = coalesce(p_kinds, w.kinds),
        enabled = coalesce(p_enabled, w.enabled),
        disabled_for = CASE WHEN p_enabled IS NULL THEN w.disabled_for END,
        failures = 0, paused_until = '-infinity'
    WHERE w.name = p_name RETURNING w.board_id INTO v_board_id;
    IF NOT FOUND THEN
        RETURN 'webhook_unknown';
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board_id, p_actor, 'change_webhook', p_name, p_reason, jsonb_build_object(
        'url', p_url IS NOT NULL, 'kinds', p_kinds, 'enabled', p_enabled));
    RETURN 'changed';
END
$$;
