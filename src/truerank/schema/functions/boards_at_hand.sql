-- boards_at_hand: boards with their settings, in slices, for readers who can't ask this database.
--
-- Those after one by number, at most p_limit, and in every slice those of which a season was frozen
-- or revealed within the last minute: the next slice that has them may be far away.
-- Returns: next: the last board of the slice, null at the end of all; as_of; a row of `boards`.
CREATE OR REPLACE FUNCTION truerank.boards_at_hand(p_after integer, p_limit integer)
RETURNS TABLE (
    next integer, as_of timestamptz, id integer, key text, grp smallint, operator text,
    descending boolean, seasons text[], has_custom_seasons boolean, zone text, decimals smallint,
    tie_names text[], tie_descending boolean[], tie_min bigint[], tie_max bigint[],
    value_min bigint, value_max bigint, total_min bigint, total_max bigint, dense boolean,
    privacy_tick bigint, epoch uuid
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH slice AS MATERIALIZED (
        SELECT b.id, b.key FROM truerank.board AS b
        WHERE b.id > p_after AND b.deleted_at IS NULL
        ORDER BY b.id LIMIT p_limit
    )
    SELECT (SELECT max(s.id) FROM slice AS s HAVING count(*) = p_limit), now(), told.*
    FROM (
        SELECT s.key FROM slice AS s
        UNION
        SELECT b.key FROM truerank.freeze AS f JOIN truerank.board AS b ON b.id = f.board_id
        WHERE b.deleted_at IS NULL
          AND greatest(f.frozen_at, f.revealed_at) > now() - interval '1 minute'
    ) AS named
    CROSS JOIN LATERAL truerank.boards(named.key) AS told
$$;
