-- sweep_erasures: bring erasures forward, as far as PostgreSQL alone can.
--
-- First, until all transactions have ended that may not know of it, what they add to the ids is
-- taken out again; then the ids are hidden no longer, and nothing is left that names them but the
-- outbox, Redis, and the erasure itself. Each has its turn. Never waits long for a lock.
-- Returns: how many it worked on.
CREATE OR REPLACE FUNCTION truerank.sweep_erasures(p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    v_done bigint := 0;
    v_erasure truerank.erasure;
    v_complete boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN 0;
    END IF;
    FOR v_erasure IN
        SELECT e.* FROM truerank.erasure AS e
        WHERE e.erased_at IS NULL AND e.swept_xid IS NULL ORDER BY e.tried_at LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    LOOP
        UPDATE truerank.erasure AS e SET tried_at = clock_timestamp() WHERE e.id = v_erasure.id;
        -- A number that is yet to come is another cluster's, from which a dump brought it.
        IF v_erasure.known_from IS NULL
           OR v_erasure.known_from > pg_snapshot_xmax(pg_current_snapshot()) THEN
            UPDATE truerank.erasure AS e SET
                known_from = pg_snapshot_xmax(pg_current_snapshot()),
                began_xid = CASE WHEN e.known_from IS NULL THEN e.began_xid ELSE '0' END
            WHERE e.id = v_erasure.id;
            CONTINUE;
        END IF;
        v_complete := pg_snapshot_xmin(pg_current_snapshot()) >= v_erasure.known_from;
        BEGIN
            IF truerank.end_late_events(v_erasure, v_complete) OR v_complete THEN
                v_done := v_done + 1;
            END IF;
            IF v_complete THEN
                PERFORM truerank.finish_sweep(v_erasure);
            END IF;
        EXCEPTION WHEN lock_not_available OR deadlock_detected OR numeric_value_out_of_range THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN v_done;
END
$$;
