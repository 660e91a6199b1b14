-- log_frozen: tell the projection of a slice of the copy that a freeze has made.
--
-- Readers ask PostgreSQL until all slices are told, and copies in Redis from before are not read.
-- Whoever takes members away has seen the copy, or had ended before it was made.
-- Returns: whether all is told, or nothing is to be any more.
CREATE OR REPLACE FUNCTION truerank.log_frozen(p_freeze bigint, p_rows_max integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_freeze truerank.freeze;
    v_group smallint;
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
    WITH slice AS MATERIALIZED (
        SELECT s.ranking, s.member, s.version, s.sort_key FROM truerank.standing AS s
        WHERE s.ranking = truerank.frozen_id(v_freeze.board_id, p_freeze)
          AND s.member > v_freeze.logged_to
        ORDER BY s.member LIMIT p_rows_max
    ), told AS (
        INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
        SELECT r.segment, v_group, 'p', s.ranking, s.version, pg_current_xact_id(), s.member,
               s.sort_key
        FROM truerank.ring AS r, slice AS s
    )
    SELECT max(s.member COLLATE "C"), count(*) INTO v_last, v_rows FROM slice AS s;
    -- No id is kept where nothing is left to tell.
    UPDATE truerank.freeze AS f SET
        logged_to = CASE WHEN v_rows < p_rows_max THEN '' ELSE v_last END,
        logged = v_rows < p_rows_max
    WHERE f.id = p_freeze;
    IF v_rows > 0 THEN
        INSERT INTO truerank.privacy_change (grp) VALUES (v_group);
    END IF;
    RETURN v_rows < p_rows_max;
END
$$;
