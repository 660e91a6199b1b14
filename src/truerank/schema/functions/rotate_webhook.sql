-- rotate_webhook: make a new secret for a receiver; the one before is signed with as well, for a while.
--
-- p_overlap_s: for so many seconds; 0: not at all. Of three in a row the first is forgotten.
-- Returns: one row: rotated, with the new secret, which is shown this once; webhook_unknown.
CREATE OR REPLACE FUNCTION truerank.rotate_webhook(
    p_name text, p_overlap_s integer, p_actor text, p_reason text
) RETURNS TABLE (outcome text, secret bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_secret bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
    v_board_id integer;
BEGIN
    UPDATE truerank.webhook AS w SET
        secret = v_secret,
        former_secret = CASE WHEN p_overlap_s > 0 THEN w.secret END,
        former_until = CASE WHEN p_overlap_s > 0
                            THEN clock_timestamp() + make_interval(secs => p_overlap_s) END
    WHERE w.name = p_name RETURNING w.board_id INTO v_board_id;
    IF NOT FOUND THEN
        outcome := 'webhook_unknown';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board_id, p_actor, 'rotate_webhook', p_name, p_reason,
            jsonb_build_object('overlap_s', p_overlap_s));
    outcome := 'rotated';
    secret := v_secret;
    RETURN NEXT;
END
$$;
