-- compared_rankings: the rankings of a group that have standings, and what is to be known of them.
--
-- p_also: rankings that a copy in Redis has; those of no board, or of one in another group, come
-- without a board. p_board_id null: of all boards. Not in it is what a freeze shows whose standings
-- haven't all been told to the projection.
-- Returns: key_bytes of a sort key, and equal_bytes as in equal_bytes().
CREATE OR REPLACE FUNCTION truerank.compared_rankings(
    p_grp smallint, p_board_id integer, p_also bigint[]
) RETURNS TABLE (ranking bigint, board text, decimals smallint, descending boolean,
                 key_bytes integer, equal_bytes integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE walk AS (
        SELECT b.id AS board_id, b.id::bigint << 36 AS ranking
        FROM truerank.board AS b
        WHERE b.grp = p_grp AND (p_board_id IS NULL OR b.id = p_board_id)
        UNION ALL
        -- From ranking to ranking, not from standing to standing.
        SELECT w.board_id, (SELECT s.ranking FROM truerank.standing AS s
                            WHERE s.ranking > w.ranking
                              AND s.ranking < (w.board_id::bigint + 1) << 36
                            ORDER BY s.ranking LIMIT 1)
        FROM walk AS w WHERE w.ranking IS NOT NULL
    ), named AS (
        SELECT w.ranking FROM walk AS w WHERE w.ranking & 68719476735 <> 0
        UNION
        SELECT a.ranking FROM unnest(p_also) AS a (ranking)
        WHERE p_board_id IS NULL OR a.ranking >> 36 = p_board_id
    )
    SELECT n.ranking, b.key, b.decimals, b.descending,
           8 * (3 + coalesce(cardinality(b.tie_names), 0)),
           CASE WHEN b.dense THEN 8 * (1 + cardinality(b.tie_names)) ELSE 0 END
    FROM named AS n
    LEFT JOIN truerank.board AS b ON b.id = n.ranking >> 36 AND b.grp = p_grp
    WHERE NOT EXISTS (SELECT FROM truerank.freeze AS f
                      WHERE NOT f.logged AND f.id = n.ranking & 4294967295
                        AND n.ranking = truerank.frozen_id(f.board_id, f.id))
    ORDER BY n.ranking
$$;
