-- add_webhook: tell a receiver of what happens from now on.
--
-- p_kinds: award.given, award.withdrawn, season.final, season.revised, member.erased, event.voided.
-- p_board null: of all boards. The address is checked by whoever calls.
-- Returns: one row: made, with the secret, which is shown this once; webhook_exists;
--          too_many (32 are kept); board_unknown.
-- Raises:  check_violation where the settings make no sense.
CREATE OR REPLACE FUNCTION truerank.add_webhook(
    p_name text, p_url text, p_kinds text[], p_board text, p_actor text, p_reason text
) RETURNS TABLE (outcome text, secret bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer := (SELECT b.id FROM truerank.board AS b
                           WHERE b.key = p_board AND b.deleted_at IS NULL);
BEGIN
    LOCK TABLE truerank.webhook IN SHARE ROW EXCLUSIVE MODE;
    outcome := CASE
        WHEN p_board IS NOT NULL AND v_board_id IS NULL THEN 'board_unknown'
        WHEN EXISTS (SELECT FROM truerank.webhook AS w WHERE w.name = p_name)
            THEN 'webhook_exists'
        WHEN (SELECT count(*) FROM truerank.webhook) >= 32 THEN 'too_many'
        ELSE 'made' END;
    IF outcome = 'made' THEN
        secret := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
        INSERT INTO truerank.webhook (name, url, kinds, board_id, secret)
        VALUES (p_name, p_url, p_kinds, v_board_id, secret);
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_board_id, p_actor, 'add_webhook', p_name, p_reason,
                jsonb_build_object('kinds', p_kinds));
    END IF;
    RETURN NEXT;
END
$$;
