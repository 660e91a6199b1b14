-- revise_ranking: settle a final season anew, where it differs from what is settled.
CREATE OR REPLACE FUNCTION truerank.revise_ranking(
    p_board truerank.board, p_season truerank.season, p_actor text, p_reason text
) RETURNS TABLE (outcome text, revision integer, changed bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_last integer := (SELECT r.revision FROM truerank.ranking AS r WHERE r.id = p_season.ranking);
BEGIN
    BEGIN
        PERFORM truerank.store_settlement(p_board, p_season, v_last + 1, p_actor, p_reason);
        SELECT s.changed INTO changed FROM truerank.settlement AS s
        WHERE s.ranking = p_season.ranking AND s.revision = v_last + 1;
        IF changed = 0 THEN
            RAISE SQLSTATE 'TR002';
        END IF;
    EXCEPTION WHEN SQLSTATE 'TR002' THEN  -- and nothing of it is stored
        outcome := 'same';
        revision := v_last;
        RETURN NEXT;
        RETURN;
    END;
    outcome := 'revised';
    revision := v_last + 1;
    UPDATE truerank.ranking AS r SET revision = v_last + 1 WHERE r.id = p_season.ranking;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (p_board.id, p_actor, 'revise_season', p_season.label, p_reason,
            jsonb_build_object('revision', revision, 'changed', changed));
    RETURN NEXT;
END
$$;
