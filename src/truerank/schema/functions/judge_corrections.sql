-- judge_corrections: refuse corrections of events that count in a season which is closed.
--
-- p_closed: the states that count as closed. Where a sealed season may be corrected, its row is held
-- until the transaction ends: it isn't settled without the correction.
CREATE OR REPLACE FUNCTION truerank.judge_corrections(
    p_board truerank.board, p_seasons truerank.season[], p_correction truerank.correction[],
    p_closed text[]
) RETURNS truerank.correction[]
LANGUAGE plpgsql AS $$
DECLARE
    v_codes text[];
    v_correction truerank.correction[];
BEGIN
    IF NOT 'sealed' = ANY (p_closed) THEN
        PERFORM truerank.hold_closed(ARRAY(SELECT s.ranking FROM unnest(p_seasons) AS s));
    END IF;
    v_codes := truerank.judge_seasons(
        p_board, p_seasons, ARRAY(SELECT c.at FROM unnest(p_correction) AS c ORDER BY c.ord),
        ARRAY(SELECT c.code FROM unnest(p_correction) AS c ORDER BY c.ord), NULL, NULL, p_closed);
    SELECT array_agg((c.ord, c.uuid, c.text, c.target, c.event_id, c.member, c.at, c.value, c.ties,
                      c.position, CASE WHEN v_codes[c.ord] IS NOT NULL THEN 'refused' END,
                      v_codes[c.ord], c.xid)::truerank.correction ORDER BY c.ord)
    INTO v_correction FROM unnest(p_correction) AS c;
    RETURN v_correction;
END
$$;
