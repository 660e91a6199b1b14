-- purge_boards: remove a slice of what deleted boards have left: standings first, then events.
--
-- Each standing leaves by an outbox row, so that every copy drops it. The board's row stays, with
-- its number, for the audit; a number is never used again.
-- Returns: rows removed; 0 when nothing is left on which no other session works.
CREATE OR REPLACE FUNCTION truerank.purge_boards(p_rows_max integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_removed bigint;
    v_changed truerank.changed[];
BEGIN
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE b.deleted_at IS NOT NULL AND b.purged_at IS NULL ORDER BY b.id
        FOR UPDATE SKIP LOCKED
    LOOP
        WITH slice AS (
            SELECT s.ranking, s.member FROM truerank.standing AS s
            WHERE s.ranking >= v_board.id::bigint << 36
              AND s.ranking < (v_board.id::bigint + 1) << 36
            ORDER BY s.ranking, s.member LIMIT p_rows_max
        ), gone AS (
            DELETE FROM truerank.standing AS s USING slice AS x
            WHERE s.ranking = x.ranking AND s.member = x.member
            RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
        )
        SELECT array_agg((g.*)::truerank.changed), count(*) INTO v_changed, v_removed
        FROM gone AS g;
        IF v_removed > 0 THEN
            PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed);
            RETURN v_removed;
        END IF;
        DELETE FROM truerank.opening AS o WHERE o.ctid IN (
            SELECT x.ctid FROM truerank.opening AS x
            WHERE x.ranking >= v_board.id::bigint << 36
              AND x.ranking < (v_board.id::bigint + 1) << 36 LIMIT p_rows_max);
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
        v_removed := truerank.purge_settlements(v_board.id, p_rows_max);
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
        v_removed := truerank.purge_leagues(v_board.id, p_rows_max);
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
        DELETE FROM truerank.ranking AS r WHERE r.board_id = v_board.id;
        DELETE FROM truerank.forgotten_reset AS f
        WHERE f.ranking >= v_board.id::bigint << 36 AND f.ranking < (v_board.id::bigint + 1) << 36;
        DELETE FROM truerank.event AS e WHERE e.ctid IN (
            SELECT x.ctid FROM truerank.event AS x WHERE x.board_id = v_board.id LIMIT p_rows_max);
        GET DIAGNOSTICS v_removed = ROW_COUNT;
        IF v_removed > 0 THEN
            RETURN v_removed;
        END IF;
        UPDATE truerank.board AS b SET purged_at = clock_timestamp()
        WHERE b.id = v_board.id
          AND NOT EXISTS (SELECT FROM truerank.standing AS s
                          WHERE s.ranking >= v_board.id::bigint << 36
                            AND s.ranking < (v_board.id::bigint + 1) << 36)
          AND NOT EXISTS (SELECT FROM truerank.opening AS o
                          WHERE o.ranking >= v_board.id::bigint << 36
                            AND o.ranking < (v_board.id::bigint + 1) << 36)
          AND NOT EXISTS (SELECT FROM truerank.event AS e WHERE e.board_id = v_board.id);
    END LOOP;
    RETURN 0;
END
$$;
