-- log_frozen: tell the projection of a slice of the copy that a freeze has made.
--
-- Readers ask PostgreSQL until all slices are told, and copies in Redis from before are not read.
-- It begins when all transactions have ended that may not have seen the copy: whom they took away
-- meanwhile is taken out of it first.
-- Returns: whether all is told, or nothing is to be any more; null where it can't begin yet.
CREATE OR REPLACE FUNCTION truerank.log_frozen(p_freeze bigint, p_rows_max integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_freeze truerank.freeze;
    v_group smallint;
    v_id bigint;
    v_changed truerank.changed[];
    v_last text;
    v_rows integer;
BEGIN
    SELECT f.* INTO v_freeze FROM truerank.freeze AS f
    WHERE f.id = p_freeze AND f.frozen_at IS NOT NULL AND f.revealed_at IS NULL AND NOT f.logged
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    SELECT b.grp INTO v_group FROM truerank.board AS b WHERE b.id = v_freeze.board_id;
    v_id := truerank.frozen_id(v_freeze.board_id, p_freeze);
    IF v_freeze.logged_to = '' THEN
        -- A number that is yet to come is another cluster's, from which a dump brought it.
        IF v_freeze.known_from IS NULL
           OR v_freeze.known_from > pg_snapshot_xmax(pg_current_snapshot()) THEN
            v_freeze.known_from := pg_snapshot_xmax(pg_current_snapshot());
            UPDATE truerank.freeze AS f SET known_from = v_freeze.known_from WHERE f.id = p_freeze;
        END IF;
        IF pg_snapshot_xmin(pg_current_snapshot()) < v_freeze.known_from THEN
            RETURN NULL;
        END IF;
        WITH gone AS (
            DELETE FROM truerank.standing AS s
            WHERE s.ranking = v_id AND NOT EXISTS (
                SELECT FROM truerank.standing AS l
                WHERE l.ranking = v_freeze.ranking AND l.member = s.member)
            RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
        )
        SELECT array_agg((g.*)::truerank.changed) INTO v_changed FROM gone AS g;
        PERFORM truerank.log_by_board(v_changed);
    END IF;
    WITH slice AS MATERIALIZED (
        SELECT s.ranking, s.member, s.version, s.sort_key FROM truerank.standing AS s
        WHERE s.ranking = v_id AND s.member > v_freeze.logged_to
        ORDER BY s.member LIMIT p_rows_max
    ), told AS (
        INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
        SELECT r.segment, v_group, 'p', s.ranking, s.version, pg_current_xact_id(), s.member,
               s.sort_key
        FROM truerank.ring AS r, slice AS s
    )
    SELECT max(s.member COLLATE "C"), count(*) INTO v_last, v_rows FROM slice AS s;
    UPDATE truerank.freeze AS f SET
        logged_to = coalesce(v_last, f.logged_to), logged = v_rows < p_rows_max
    WHERE f.id = p_freeze;
    IF v_rows > 0 THEN
        INSERT INTO truerank.privacy_change (grp) VALUES (v_group);
    END IF;
    RETURN v_rows < p_rows_max;
END
$$;
