-- make_award_rule: say who gets what of a board's seasons of one period; see give_awards.
--
-- It holds for seasons that are settled from now on. p_kind ranks takes p_rank_from, p_rank_to and a
-- numbering (ordinal, competition, dense); percent takes p_percent; score takes p_score, in the
-- board's unit.
-- Returns: made, same, rule_exists (of this name, with other settings), board_unknown.
-- Raises:  check_violation where the settings make no sense; 22023 for a score that the board can't
--          have.
CREATE OR REPLACE FUNCTION truerank.make_award_rule(
    p_board text, p_period text, p_name text, p_kind text, p_rank_from bigint, p_rank_to bigint,
    p_numbering text, p_percent numeric, p_score numeric, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_old truerank.award_rule;
    v_score bigint;
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL FOR NO KEY UPDATE;
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    IF truerank.in_last_place(p_score, v_board.decimals)
       NOT BETWEEN -9223372036854775808 AND 9223372036854775807
       OR truerank.in_last_place(p_score, v_board.decimals)
          <> trunc(truerank.in_last_place(p_score, v_board.decimals)) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the board has no such score';
    END IF;
    v_score := truerank.in_last_place(p_score, v_board.decimals);
    SELECT r.* INTO v_old FROM truerank.award_rule AS r
    WHERE r.board_id = v_board.id AND r.period = p_period AND r.name = p_name
      AND r.dropped_at IS NULL;
    IF v_old.id IS NOT NULL THEN
        RETURN CASE WHEN (v_old.kind, v_old.numbering, v_old.rank_from, v_old.rank_to,
                          v_old.percent, v_old.score) IS NOT DISTINCT FROM
                         (p_kind, p_numbering, p_rank_from, p_rank_to, p_percent, v_score)
                    THEN 'same' ELSE 'rule_exists' END;
    END IF;
    INSERT INTO truerank.award_rule
        (board_id, period, name, kind, numbering, rank_from, rank_to, percent, score)
    VALUES (v_board.id, p_period, p_name, p_kind, p_numbering, p_rank_from, p_rank_to, p_percent,
            v_score);
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board.id, p_actor, 'make_award_rule', p_name, p_reason, jsonb_build_object(
        'period', p_period, 'kind', p_kind, 'rank_from', p_rank_from, 'rank_to', p_rank_to,
        'numbering', p_numbering, 'percent', p_percent, 'score', p_score));
    RETURN 'made';
END
$$;
