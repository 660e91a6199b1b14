-- sweep_members: what follows from a member's state by itself: bans end, merges become complete.
--
-- A transaction that was under way during a merge may not have known of it, and have added events
-- or standings to the id that is no more. Until all such transactions have ended, what they add is
-- brought over; afterwards once more, for what left no standing behind, and then no longer.
-- Each has its turn, however many can't be completed.
-- Never waits long for a lock: who is in the way is met again in the next call.
-- Returns: how many bans it lifted and merges it worked on.
CREATE OR REPLACE FUNCTION truerank.sweep_members(p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    v_done bigint := truerank.lift_bans(NULL, p_limit);
    v_merge truerank.merging;
    v_complete boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN v_done;  -- the next call is another transaction, and may be another
    END IF;
    FOR v_merge IN
        SELECT m.* FROM truerank.merging AS m ORDER BY m.tried_at, m.member LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    LOOP
        UPDATE truerank.merging SET tried_at = clock_timestamp() WHERE member = v_merge.member;
        -- A number that is yet to come is another cluster's, from which a dump brought it.
        IF v_merge.known_from IS NULL
           OR v_merge.known_from > pg_snapshot_xmax(pg_current_snapshot()) THEN
            UPDATE truerank.merging SET known_from = pg_snapshot_xmax(pg_current_snapshot())
            WHERE member = v_merge.member;
            CONTINUE;
        END IF;
        v_complete := pg_snapshot_xmin(pg_current_snapshot()) >= v_merge.known_from;
        CONTINUE WHEN NOT v_complete AND NOT EXISTS (
            SELECT FROM truerank.member_rankings(v_merge.member, 0) AS r
            JOIN truerank.standing AS s ON s.ranking = r AND s.member = v_merge.member
            JOIN truerank.board AS b ON b.id = r >> 36
            CROSS JOIN LATERAL truerank.season_of_ranking(b, r) AS n
            WHERE n.ends_at > b.history_from);
        BEGIN
            PERFORM truerank.refold_member(truerank.owner_of(v_merge.member));
            -- A freeze may have copied what came late.
            PERFORM truerank.carry_frozen(v_merge.member, truerank.owner_of(v_merge.member));
            IF v_complete THEN
                DELETE FROM truerank.merging WHERE member = v_merge.member;
            END IF;
            v_done := v_done + 1;
        EXCEPTION WHEN lock_not_available OR deadlock_detected OR numeric_value_out_of_range THEN
            -- Of a total that left its range somebody has to void an event first.
            CONTINUE;
        END;
    END LOOP;
    RETURN v_done;
END
$$;
