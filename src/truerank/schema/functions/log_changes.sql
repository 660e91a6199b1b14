-- log_changes: append one outbox row per changed standing, with its version.
--
-- A null sort key says that the standing went: op d, drop.
--
-- A row that an upsert inserted draws its version here, in a statement after the insert: drawn
-- in the insert it could be lower than that of a removal which it waited for, and the projection
-- would keep the member out for good.
CREATE OR REPLACE FUNCTION truerank.log_changes(
    p_grp smallint, p_xid xid8, p_changed truerank.changed[]
) RETURNS void
LANGUAGE sql AS $$
    WITH drawn AS (
        UPDATE truerank.standing AS s SET version = nextval('truerank.version')
        FROM unnest(p_changed) AS c
        WHERE c.version = 0 AND s.ranking = c.ranking AND s.member = c.member
        RETURNING s.ranking, s.version, s.member, s.sort_key
    ), now_at AS (
        SELECT segment FROM truerank.ring
    )
    INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
    SELECT n.segment, p_grp, CASE WHEN c.sort_key IS NULL THEN 'd' ELSE 'p' END, c.ranking,
           c.version, p_xid, c.member, coalesce(c.sort_key, '')
    FROM now_at AS n, (
        SELECT d.ranking, d.version, d.member, d.sort_key FROM drawn AS d
        UNION ALL
        SELECT c.ranking, c.version, c.member, c.sort_key FROM unnest(p_changed) AS c
        WHERE c.version <> 0
    ) AS c
$$;
