-- proof_slice: a chunk of a group's standings in the order of their places, to compare a copy with.
--
-- In order of ranking, sort key and member; p_ranking, p_key and p_member name the last row of the
-- chunk before, null at the start.
-- Returns: one row per ranking: the members, what is shown of each (version and sort key), and the
--          numbers, from 1, of those that take no place. No rows where nothing is left.
CREATE OR REPLACE FUNCTION truerank.proof_slice(
    p_grp smallint, p_ranking bigint, p_key bytea, p_member text, p_rows_max integer
) RETURNS TABLE (ranking bigint, equal_bytes integer, members bytea[], shown bytea[],
                 withheld integer[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- The planner would rather take the primary key, and sort the whole ranking for each chunk.
-- A sort that is left nevertheless counts as so dear that each call would be compiled, for 30 ms.
SET enable_sort = off SET enable_incremental_sort = off SET enable_seqscan = off
SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_left integer := p_rows_max;
    v_board integer;
    v_from bigint := p_ranking;
    v_key bytea := coalesce(p_key, '');
    v_member text := coalesce(p_member, '');
BEGIN
    FOR v_board IN
        SELECT b.id FROM truerank.board AS b
        WHERE b.grp = p_grp AND (p_ranking IS NULL OR b.id >= p_ranking >> 36) ORDER BY b.id
    LOOP
        IF v_from IS NULL OR v_board > v_from >> 36 THEN
            v_from := v_board::bigint << 36;
            v_key := '';
            v_member := '';
        END IF;
        -- The row comparison is on an index, so a chunk costs the same wherever it is.
        FOR ranking, members, shown IN
            SELECT c.ranking,
                   array_agg(convert_to(c.member, 'UTF8')),
                   array_agg(int8send(c.version) || c.sort_key)
            FROM (
                SELECT s.ranking, s.sort_key, s.member, s.version FROM truerank.standing AS s
                WHERE (s.ranking, s.sort_key, s.member) > (v_from, v_key, v_member)
                  AND s.ranking < (v_board::bigint + 1) << 36
                ORDER BY s.ranking, s.sort_key, s.member LIMIT v_left
            ) AS c
            GROUP BY c.ranking ORDER BY c.ranking
        LOOP
            v_left := v_left - cardinality(members);
            equal_bytes := truerank.equal_bytes(ranking);
            withheld := NULL;
            IF EXISTS (SELECT FROM truerank.member_state AS m
                       WHERE m.state IN ('hidden', 'banned', 'merged')
                         AND m.board_id IN (0, v_board)) THEN
                withheld := ARRAY(
                    SELECT u.n FROM unnest(members) WITH ORDINALITY AS u (member, n)
                    WHERE EXISTS (SELECT FROM truerank.member_state AS m
                                  WHERE m.member = convert_from(u.member, 'UTF8')
                                    AND m.board_id IN (0, v_board)
                                    AND m.state IN ('hidden', 'banned', 'merged')));
            END IF;
            RETURN NEXT;
        END LOOP;
        EXIT WHEN v_left <= 0;
    END LOOP;
END
$$;
