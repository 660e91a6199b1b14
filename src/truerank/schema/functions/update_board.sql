-- update_board: change rules of a board, with who and why.
--
-- p_changes names settings: value_min, value_max, total_min, total_max, earliest_at, latest_at,
-- future_max, late_grace, retention, rate_max, accepting, dense, hold, auto_close; null takes an
-- optional one away. Of auto_close counts from when it is switched on: seasons that ended before are
-- left to people.
-- They hold for events that come from now on; standings stay. Where dense changes, workers fill a
-- new copy of the board's group. What would change existing results
-- (operator, order, zone, decimals, seasons, tie-breaks) is fixed: make another board.
-- Returns: changed, same, board_unknown, or setting_fixed with the setting's name behind a colon.
-- Raises:  check_violation or invalid_text_representation for a bad value.
CREATE OR REPLACE FUNCTION truerank.update_board(
    p_board text, p_changes jsonb, p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    v_old truerank.board;
    v_new truerank.board;
    v_fixed text;
BEGIN
    SELECT b.* INTO v_old FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL FOR NO KEY UPDATE;
    IF v_old.id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    SELECT min(k) INTO v_fixed FROM jsonb_object_keys(p_changes) AS k
    WHERE k NOT IN ('value_min', 'value_max', 'total_min', 'total_max', 'earliest_at', 'latest_at',
                    'future_max', 'late_grace', 'retention', 'rate_max', 'accepting', 'dense', 'hold',
                    'auto_close');
    IF v_fixed IS NOT NULL THEN
        RETURN 'setting_fixed:' || v_fixed;
    END IF;
    v_new := jsonb_populate_record(v_old, p_changes);
    IF v_old.operator <> 'sum' AND (p_changes ? 'total_min' OR p_changes ? 'total_max') THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'only boards that sum have totals to limit: limit the values';
    END IF;
    IF v_new IS NOT DISTINCT FROM v_old THEN
        RETURN 'same';
    END IF;
    UPDATE truerank.board AS b SET
        (value_min, value_max, total_min, total_max, earliest_at, latest_at, future_max,
         late_grace, retention, rate_max, accepting, hold, auto_close, auto_close_from,
         close_next_at, dense, dense_turns)
        = (v_new.value_min, v_new.value_max, v_new.total_min, v_new.total_max, v_new.earliest_at,
           v_new.latest_at, v_new.future_max, v_new.late_grace, v_new.retention, v_new.rate_max,
           v_new.accepting, v_new.hold, v_new.auto_close,
           CASE WHEN v_old.auto_close AND v_new.auto_close THEN v_old.auto_close_from
                WHEN v_new.auto_close THEN clock_timestamp() END, NULL, v_new.dense,
           v_old.dense_turns + (v_new.dense <> v_old.dense)::integer)
    WHERE b.id = v_old.id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    SELECT v_old.id, p_actor, 'update_board', p_board, p_reason,
           jsonb_object_agg(k, jsonb_build_array(to_jsonb(v_old) -> k, to_jsonb(v_new) -> k))
    FROM jsonb_object_keys(p_changes) AS k;
    RETURN 'changed';
END
$$;
