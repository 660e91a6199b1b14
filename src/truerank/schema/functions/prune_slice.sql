-- prune_slice: walk on through a board's members, and forget up to so many events.
--
-- A member whose events are all younger than the horizon costs one look at an index, and counts
-- as a tenth of an event, so that a call stays short on a board where nothing is old.
-- At its end, what was carried over for seasons that are over goes too.
-- Returns: events removed.
CREATE OR REPLACE FUNCTION truerank.prune_slice(
    p_board truerank.board, p_after_member text, p_rows_max integer
) RETURNS bigint
-- To plan costs more than to remove; and a plan that was made while hardly anything was carried
-- over would read all of it.
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_seasons truerank.season[];
    v_member text := p_after_member;
    v_next text;
    v_gone bigint;
    v_removed bigint := 0;
    v_looks bigint := 0;
BEGIN
    SELECT array_agg(s) INTO v_seasons
    FROM truerank.seasons_of(p_board, ARRAY[p_board.history_from - interval '1 microsecond']) AS s
    WHERE s.ends_at > p_board.history_from;
    WHILE v_removed < p_rows_max AND v_looks < 10::bigint * p_rows_max LOOP
        SELECT e.member INTO v_next FROM truerank.event AS e
        WHERE e.board_id = p_board.id AND e.member > v_member ORDER BY e.member LIMIT 1;
        IF NOT FOUND THEN
            UPDATE truerank.pruning SET
                after_member = v_member, removed = removed + v_removed,
                ended_at = CASE WHEN truerank.drop_openings(p_board, p_rows_max) = 0
                                THEN clock_timestamp() END
            WHERE board_id = p_board.id;
            RETURN v_removed;
        END IF;
        v_gone := truerank.prune_member(
            p_board, v_seasons, v_next, p_rows_max - v_removed::integer);
        v_removed := v_removed + greatest(v_gone, 0);
        v_looks := v_looks + 1;
        IF v_gone <= 0 THEN  -- or there may be more of this member
            v_member := v_next;
        END IF;
    END LOOP;
    UPDATE truerank.pruning SET after_member = v_member, removed = removed + v_removed
    WHERE board_id = p_board.id;
    RETURN v_removed;
END
$$;
