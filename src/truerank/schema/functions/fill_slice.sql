-- fill_slice: compute the standings of the next members in seasons of periods that were added.
--
-- In a transaction of its own, again and again until done; what is committed is remembered. It begins
-- when no writer is left that doesn't know of the period: those that do compute the members they
-- touch themselves, so whatever is there already is right. Who corrects events, or takes a member's
-- past away, holds the board's row meanwhile.
-- Returns: board_unknown; nothing (no period was added); waiting (for writers, or for who holds the
--          row: repeat it); filled; or done; and the members looked at.
CREATE OR REPLACE FUNCTION truerank.fill_slice(
    p_board text, p_members_max integer, OUT outcome text, OUT members bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_names text[];
    v_seasons truerank.season[];
    v_runs truerank.season_run[];
    v_rankings bigint[];
    v_members text[];
BEGIN
    PERFORM truerank.need_read_committed();
    members := 0;
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED;
    IF v_board.id IS NULL THEN
        outcome := CASE WHEN EXISTS (SELECT FROM truerank.board AS b
                                     WHERE b.key = p_board AND b.deleted_at IS NULL)
                        THEN 'waiting' ELSE 'board_unknown' END;
        RETURN;
    ELSIF v_board.filling = '{}' THEN
        outcome := 'nothing';
        RETURN;
    END IF;
    IF v_board.filling_xid IS NULL OR v_board.filling_xid > pg_current_xact_id() THEN
        UPDATE truerank.board AS b SET filling_xid = pg_current_xact_id() WHERE b.id = v_board.id
        RETURNING filling_xid INTO v_board.filling_xid;
    END IF;
    IF EXISTS (SELECT FROM truerank.writers_before(v_board.id, v_board.filling_xid)) THEN
        outcome := 'waiting';
        RETURN;
    END IF;

    WITH RECURSIVE walk AS (  -- from member to member along the index
        SELECT (SELECT min(e.member) FROM truerank.event AS e
                WHERE e.board_id = v_board.id AND e.member > v_board.filled_to) AS member, 1 AS n
        UNION ALL
        SELECT (SELECT min(e.member) FROM truerank.event AS e
                WHERE e.board_id = v_board.id AND e.member > w.member), w.n + 1
        FROM walk AS w WHERE w.member IS NOT NULL AND w.n < p_members_max
    )
    SELECT array_agg(w.member ORDER BY w.n) INTO v_names FROM walk AS w WHERE w.member IS NOT NULL;
    IF v_names IS NULL THEN
        UPDATE truerank.board AS b SET
            filling = '{}', filling_xid = NULL, filled_to = '', close_next_at = NULL,
            filled_members = 0, filling_members = NULL
        WHERE b.id = v_board.id;
        outcome := 'done';
        RETURN;
    END IF;

    members := cardinality(v_names);
    v_board.seasons := v_board.filling;
    v_board.has_custom_seasons := false;
    SELECT array_agg(s) INTO v_seasons FROM truerank.seasons_of(v_board, ARRAY(
        SELECT e.occurred_at FROM truerank.event AS e
        WHERE e.board_id = v_board.id AND e.member = ANY (v_names) AND e.kind = 's')) AS s;
    v_runs := truerank.season_runs(v_seasons);
    SELECT array_agg(d.ranking), array_agg(d.member) INTO v_rankings, v_members
    FROM (SELECT DISTINCT r.ranking, truerank.owner_of(e.member) AS member
          FROM truerank.event AS e
          CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.occurred_at) AS r
          WHERE e.board_id = v_board.id AND e.member = ANY (v_names) AND e.kind = 's'
            AND e.ended_at IS NULL) AS d;
    PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), truerank.fold_missing(
        v_board, v_seasons, v_rankings, v_members));
    UPDATE truerank.board AS b SET
        filled_to = v_names[cardinality(v_names)], filled_members = b.filled_members + members
    WHERE b.id = v_board.id;
    outcome := 'filled';
END
$$;
