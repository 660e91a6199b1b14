-- log_changes: append one outbox row per changed standing of a board, with its version.
--
-- A null sort key says that the standing went: op d, drop.
--
-- A row that an upsert inserted draws its version here, in a statement after the insert: drawn
-- in the insert it could be lower than that of a removal which it waited for, and the projection
-- would keep the member out for good.
-- Where seasons are divided into cohorts, the standings there follow (see mirror_changes).
-- Returns: the changes, each with its version.
CREATE OR REPLACE FUNCTION truerank.log_changes(
    p_grp smallint, p_xid xid8, p_changed truerank.changed[]
) RETURNS truerank.changed[]
LANGUAGE plpgsql AS $$
DECLARE
    v_changed truerank.changed[];
BEGIN
    WITH drawn AS (
        UPDATE truerank.standing AS s SET version = nextval('truerank.version')
        FROM unnest(p_changed) AS c
        WHERE c.version = 0 AND s.ranking = c.ranking AND s.member = c.member
        RETURNING s.ranking, s.member, s.sort_key, s.version, s.score
    ), versioned AS (
        SELECT d.* FROM drawn AS d
        UNION ALL
        SELECT c.* FROM unnest(p_changed) AS c WHERE c.version <> 0
    ), logged AS (
        INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
        SELECT r.segment, p_grp, CASE WHEN v.sort_key IS NULL THEN 'd' ELSE 'p' END, v.ranking,
               v.version, p_xid, v.member, coalesce(v.sort_key, '')
        FROM truerank.ring AS r, versioned AS v
    )
    SELECT array_agg(v::truerank.changed) INTO v_changed FROM versioned AS v;
    IF EXISTS (SELECT FROM truerank.league AS l
               WHERE l.board_id = (v_changed[1]).ranking >> 36) THEN
        PERFORM truerank.mirror_changes(p_grp, p_xid, v_changed);
    END IF;
    RETURN v_changed;
END
$$;
