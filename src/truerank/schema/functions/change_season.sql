-- change_season: give a custom season other bounds, until it is final, with who and why.
--
-- Standings follow in the same transaction: members with events between the old and the new bounds
-- are computed from their events. Nothing is half done.
-- Locks:   the board's row and its advisory lock, by trying and never queued: a writer under way
--          knows the old bounds. Then standings in order of member.
-- Returns: changed, same, board_unknown, season_unknown, season_final, season_sealed, or history_incomplete where
--          events between the old and the new bounds may be forgotten.
-- Raises:  25001 above READ COMMITTED, where events that were just committed can't be seen;
--          check_violation where starts_at isn't before ends_at; 55P03 where writers of the board,
--          or who changes it, hold their transactions open for two seconds;
--          numeric_value_out_of_range where a total would leave the board's range.
CREATE OR REPLACE FUNCTION truerank.change_season(
    p_board text, p_label text, p_starts_at timestamptz, p_ends_at timestamptz,
    p_actor text, p_reason text
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_board truerank.board;
    v_old truerank.ranking;
    v_season truerank.season;
    v_history_from timestamptz;
    v_members text[];
    v_changed truerank.changed[];
BEGIN
    PERFORM truerank.need_read_committed();
    v_board := truerank.lock_board_alone(p_board, true);
    IF v_board.id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    SELECT r.* INTO v_old FROM truerank.ranking AS r
    WHERE r.board_id = v_board.id AND r.season = p_label AND r.period = 'custom'
      AND r.kind = 'live' FOR UPDATE;
    IF v_old.id IS NULL THEN
        RETURN 'season_unknown';
    ELSIF v_old.state = 'final' THEN
        RETURN 'season_final';
    ELSIF v_old.state = 'sealed' THEN
        -- It would be settled when its hold is over, whenever it ends by then.
        RETURN 'season_sealed';
    ELSIF (v_old.starts_at, v_old.ends_at) = (p_starts_at, p_ends_at) THEN
        RETURN 'same';
    END IF;
    -- Also for writers with a snapshot of before: they lock the board's row, and fail with 40001.
    -- The horizon stays where it is from here on: it rises with the same row.
    UPDATE truerank.board SET has_custom_seasons = true, close_next_at = NULL
    WHERE id = v_board.id
    RETURNING history_from INTO v_history_from;
    IF v_old.starts_at <> p_starts_at AND least(v_old.starts_at, p_starts_at) < v_history_from
       OR v_old.ends_at <> p_ends_at AND least(v_old.ends_at, p_ends_at) <= v_history_from THEN
        RETURN 'history_incomplete';
    END IF;
    UPDATE truerank.ranking SET starts_at = p_starts_at, ends_at = p_ends_at WHERE id = v_old.id;
    INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
    VALUES (v_board.id, p_actor, 'change_season', p_label, p_reason, jsonb_build_object(
        'starts_at', jsonb_build_array(v_old.starts_at, p_starts_at),
        'ends_at', jsonb_build_array(v_old.ends_at, p_ends_at)));

    SELECT array_agg(DISTINCT truerank.owner_of(n.name)) INTO v_members
    FROM (
        SELECT DISTINCT e.member AS name FROM truerank.event AS e
        WHERE e.board_id = v_board.id AND e.kind = 's'
          AND (e.occurred_at >= v_old.starts_at AND e.occurred_at < v_old.ends_at)
              <> (e.occurred_at >= p_starts_at AND e.occurred_at < p_ends_at)
    ) AS n;
    IF v_members IS NULL THEN
        RETURN 'changed';
    END IF;
    v_season := (v_old.id, 'custom', p_label, p_starts_at, p_ends_at)::truerank.season;
    INSERT INTO truerank.standing
        (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
    SELECT v_old.id, m, f.score, f.ties, 0, f.event_at, f.event_position, f.moved, f.sort_key
    FROM unnest(v_members) AS m
    CROSS JOIN LATERAL truerank.fold_events(
        v_board, v_old.id, truerank.names_of(m), p_starts_at, p_ends_at) AS f
    ORDER BY m COLLATE "C"
    ON CONFLICT (ranking, member) DO NOTHING;
    -- Also draws the versions of the rows just inserted, in a statement after the insert.
    SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
        v_board, ARRAY[v_season], array_fill(v_old.id, ARRAY[cardinality(v_members)]),
        v_members) AS c;
    PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed);
    RETURN 'changed';
END
$$;
