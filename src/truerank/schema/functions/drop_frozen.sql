-- drop_frozen: remove a slice of a copy that is shown no longer.
--
-- Not for a minute after the season was revealed: some processes may not know of it yet.
-- Returns: rows removed; 0 when nothing is left to do now.
CREATE OR REPLACE FUNCTION truerank.drop_frozen(p_rows_max integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_freeze truerank.freeze;
    v_changed truerank.changed[];
    v_removed bigint;
BEGIN
    FOR v_freeze IN
        SELECT f.* FROM truerank.freeze AS f
        WHERE f.dropped_at IS NULL AND f.revealed_at < clock_timestamp() - interval '1 minute'
        ORDER BY f.id FOR UPDATE SKIP LOCKED
    LOOP
        WITH slice AS (
            SELECT s.member FROM truerank.standing AS s
            WHERE s.ranking = truerank.frozen_id(v_freeze.board_id, v_freeze.id)
            ORDER BY s.member LIMIT p_rows_max FOR UPDATE
        ), gone AS (
            DELETE FROM truerank.standing AS s USING slice AS x
            WHERE s.ranking = truerank.frozen_id(v_freeze.board_id, v_freeze.id)
              AND s.member = x.member
            RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
        )
        SELECT array_agg((g.*)::truerank.changed), count(*) INTO v_changed, v_removed
        FROM gone AS g;
        IF v_removed > 0 THEN
            PERFORM truerank.log_by_board(v_changed);
            RETURN v_removed;
        END IF;
        DELETE FROM truerank.ranking AS r
        WHERE r.id = truerank.frozen_id(v_freeze.board_id, v_freeze.id);
        UPDATE truerank.freeze AS f SET dropped_at = clock_timestamp() WHERE f.id = v_freeze.id;
    END LOOP;
    RETURN 0;
END
$$;
