-- prune_events: forget events that occurred before their boards' retention, a slice per call.
--
-- Call it in a transaction of its own, again and again: first the horizon is raised, then
-- whoever may know the old one is waited for, then one walk through the board's members removes
-- what lies before. Nothing waits: where something isn't free, the next call tries again. A
-- horizon is raised once it would move by p_step.
-- Locks:   the board's row, shared, in a slice; exclusively for the moment of a raise.
-- Returns: events removed, and whether there is more to do on some board.
CREATE OR REPLACE FUNCTION truerank.prune_events(
    p_rows_max integer, p_board text DEFAULT NULL, p_step interval DEFAULT '1 hour'
) RETURNS TABLE (removed bigint, pending boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_pruning truerank.pruning;
    v_id integer;
    v_slice bigint;
BEGIN
    removed := 0;
    pending := false;
    FOR v_id IN
        SELECT b.id FROM truerank.board AS b LEFT JOIN truerank.pruning AS p ON p.board_id = b.id
        WHERE b.deleted_at IS NULL AND (p_board IS NULL OR b.key = p_board)
          AND (p.board_id IS NOT NULL AND p.ended_at IS NULL
               OR clock_timestamp() - b.retention > b.history_from + p_step)
        ORDER BY b.id
    LOOP
        SELECT p.* INTO v_pruning FROM truerank.pruning AS p
        WHERE p.board_id = v_id FOR UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM truerank.pruning AS p WHERE p.board_id = v_id) THEN
            pending := true;
        ELSIF v_pruning.board_id IS NULL OR v_pruning.ended_at IS NOT NULL THEN
            PERFORM truerank.raise_horizon(v_id);
            pending := true;
        ELSIF v_pruning.barrier IS NULL
              OR v_pruning.barrier > pg_snapshot_xmax(pg_current_snapshot()) THEN
            -- A number that is yet to come is another cluster's, from which a dump brought it.
            -- A later transaction than the one that raised the horizon: who has a higher number
            -- than all there are now reads the new one.
            UPDATE truerank.pruning SET barrier = pg_snapshot_xmax(pg_current_snapshot())
            WHERE board_id = v_id;
            pending := true;
        ELSIF pg_snapshot_xmin(pg_current_snapshot()) < v_pruning.barrier
              OR removed >= p_rows_max THEN
            pending := true;
        ELSE
            -- Whoever gives a season other bounds holds this row.
            SELECT b.* INTO v_board FROM truerank.board AS b
            WHERE b.id = v_id FOR SHARE SKIP LOCKED;
            pending := pending OR NOT FOUND;
            CONTINUE WHEN NOT FOUND;
            v_slice := truerank.prune_slice(
                v_board, v_pruning.after_member, p_rows_max - removed::integer);
            removed := removed + v_slice;
            pending := pending OR EXISTS (SELECT FROM truerank.pruning AS p
                                          WHERE p.board_id = v_id AND p.ended_at IS NULL);
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
