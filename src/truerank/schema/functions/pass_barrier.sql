-- pass_barrier: note that no writer is left that could have begun before a season was sealed.
--
-- In a transaction of its own. Repeat it after a pause while it says waiting. It looks at who holds
-- the board's lock, and takes it itself in no way: nobody ever waits for it, and writers that come
-- after the seal, however many, don't hold it up. Every writer has its number before it reads the
-- season's state (see lock_board), so those with later numbers than barrier_xid have read sealed.
-- Who is waited for: truerank.writers_before.
-- Returns: passed, waiting, not_sealed or final; board_unknown, season_unknown.
CREATE OR REPLACE FUNCTION truerank.pass_barrier(p_board text, p_season text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board_id integer;
    v_ranking truerank.ranking;
    v_id bigint;
BEGIN
    PERFORM truerank.need_read_committed();
    SELECT b.id INTO v_board_id FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board_id IS NULL THEN
        RETURN 'board_unknown';
    END IF;
    v_id := (SELECT s.ranking FROM truerank.find_season(v_board_id, coalesce(p_season, '')) AS s);
    IF v_id IS NULL THEN
        RETURN 'season_unknown';
    END IF;
    SELECT r.* INTO v_ranking FROM truerank.ranking AS r WHERE r.id = v_id;
    IF v_ranking.state = 'final' THEN
        RETURN 'final';
    ELSIF v_ranking.state IS DISTINCT FROM 'sealed' THEN
        RETURN 'not_sealed';
    ELSIF v_ranking.barrier_at IS NOT NULL THEN
        RETURN 'passed';
    END IF;
    SELECT r.* INTO v_ranking FROM truerank.ranking AS r
    WHERE r.id = v_id AND r.state = 'sealed' AND r.barrier_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'waiting';
    END IF;
    -- A number that is yet to come is another cluster's, from which a dump brought it.
    IF v_ranking.barrier_xid IS NULL OR v_ranking.barrier_xid > pg_current_xact_id() THEN
        v_ranking.barrier_xid := pg_current_xact_id();
    END IF;
    IF NOT EXISTS (SELECT FROM truerank.writers_before(v_board_id, v_ranking.barrier_xid)) THEN
        v_ranking.barrier_at := clock_timestamp();
    END IF;
    UPDATE truerank.ranking SET
        barrier_xid = v_ranking.barrier_xid, barrier_at = v_ranking.barrier_at
    WHERE id = v_id;
    RETURN CASE WHEN v_ranking.barrier_at IS NULL THEN 'waiting' ELSE 'passed' END;
END
$$;
