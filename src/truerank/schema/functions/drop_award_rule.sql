-- drop_award_rule: let a rule hold no longer for seasons that are settled from now on.
--
-- What was given by it stays.
-- Returns: dropped, rule_unknown or board_unknown.
CREATE OR REPLACE FUNCTION truerank.drop_award_rule(
    p_board text, p_period text, p_name text, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer := (SELECT b.id FROM truerank.board AS b
                           WHERE b.key = p_board AND b.deleted_at IS NULL);
BEGIN
    IF v_board_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    UPDATE truerank.award_rule AS r SET dropped_at = clock_timestamp()
    WHERE r.board_id = v_board_id AND r.period = p_period AND r.name = p_name
      AND r.dropped_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'rule_unknown';
    END IF;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board_id, p_actor, 'drop_award_rule', p_name, p_reason,
            jsonb_build_object('period', p_period));
    RETURN 'dropped';
END
$$;
