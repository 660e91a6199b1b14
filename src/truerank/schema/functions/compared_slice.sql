-- compared_slice: standings of a ranking in order, after a sort key and member, as a copy holds them.
--
-- Returns: one row: members; what each is shown with (version, 8 bytes, and sort key); the places of
--          those that take one; the last sort key and member. Nulls where nothing is left. One
--          statement, and so one short snapshot.
CREATE OR REPLACE FUNCTION truerank.compared_slice(
    p_ranking bigint, p_key bytea, p_member text, p_rows_max integer
) RETURNS TABLE (members bytea[], shown bytea[], places bytea[], last_key bytea, last_member text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- The planner might rather take the other index, and sort the whole ranking for each chunk.
-- A sort that is left nevertheless counts as so dear that each call would be compiled, for 30 ms.
SET enable_sort = off SET enable_incremental_sort = off SET enable_seqscan = off
SET enable_bitmapscan = off SET jit = off AS $$
    WITH slice AS MATERIALIZED (
        SELECT s.member, s.sort_key, s.version,
               EXISTS (SELECT FROM truerank.member_state AS m
                       WHERE m.member = s.member AND m.board_id IN (0, p_ranking >> 36)
                         AND m.state IN ('hidden', 'banned', 'merged')) AS withheld
        FROM truerank.standing AS s
        WHERE s.ranking = p_ranking AND (s.sort_key, s.member) > (p_key, p_member COLLATE "C")
        ORDER BY s.sort_key, s.member LIMIT p_rows_max
    ), last AS (
        SELECT s.sort_key, s.member FROM slice AS s ORDER BY s.sort_key DESC, s.member DESC LIMIT 1
    ), packed AS (
        SELECT array_agg(convert_to(s.member, 'UTF8')) AS members,
               array_agg(int8send(s.version) || s.sort_key) AS shown,
               array_agg(s.sort_key || convert_to(s.member, 'UTF8')) FILTER (WHERE NOT s.withheld)
                   AS places
        FROM slice AS s
    )
    SELECT p.members, p.shown, p.places, l.sort_key, l.member
    FROM packed AS p LEFT JOIN last AS l ON true
$$;
