-- scan_group: a chunk of a group's states and standings, for filling a copy.
--
-- In order of ranking and member, and so the states before what they withhold: those everywhere
-- stand under ranking 0, those of a board under its first number, which no ranking has; key_bytes
-- is -1 there. p_ranking and p_member name the last row of the chunk before; null at the start.
-- Returns: one row per ranking, packed and with equal_bytes like read_batch, with the last member of the part; no
--          rows when the scan is done.
CREATE OR REPLACE FUNCTION truerank.scan_group(
    p_grp smallint, p_ranking bigint, p_member text, p_rows_max integer
) RETURNS TABLE (ranking bigint, key_bytes integer, packed bytea[], equal_bytes integer, last_member text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- The planner might rather take the other index, and sort the whole ranking for each chunk.
-- A sort that is left nevertheless counts as so dear that each call would be compiled, for 30 ms.
SET enable_sort = off SET enable_incremental_sort = off SET enable_seqscan = off
SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_left integer := p_rows_max;
    v_board integer;
    v_rows integer;
    v_from bigint := p_ranking;
    v_after text := p_member;
BEGIN
    FOR v_board IN
        SELECT b.id FROM (SELECT 0 AS id UNION ALL
                          SELECT x.id FROM truerank.board AS x WHERE x.grp = p_grp) AS b
        WHERE p_ranking IS NULL OR b.id >= p_ranking >> 36 ORDER BY b.id
    LOOP
        IF v_from IS NULL OR v_board > v_from >> 36 THEN
            v_from := v_board::bigint << 36;
            v_after := '';
        END IF;
        IF v_from = v_board::bigint << 36 THEN
            SELECT array_agg('s'::bytea || int8send(c.version)
                             || convert_to(truerank.state_letter(c.state) || c.member, 'UTF8')),
                   max(c.member COLLATE "C"), count(*)
            INTO packed, last_member, v_rows
            FROM (
                SELECT m.* FROM truerank.member_state AS m
                WHERE m.board_id = v_board AND m.member > v_after
                  AND m.state IN ('hidden', 'banned', 'merged')
                ORDER BY m.member LIMIT v_left
            ) AS c;
            IF v_rows > 0 THEN
                ranking := v_from;
                key_bytes := -1;
                equal_bytes := 0;
                v_left := v_left - v_rows;
                RETURN NEXT;
            END IF;
            EXIT WHEN v_left <= 0;
            CONTINUE WHEN v_board = 0;
        END IF;
        -- The row comparison is on the primary key, so a chunk costs the same wherever it is.
        FOR ranking, key_bytes, packed, last_member, v_rows IN
            SELECT c.ranking, max(length(c.sort_key)),
                   array_agg('p'::bytea || int8send(c.version) || c.sort_key
                             || convert_to(c.member, 'UTF8')),
                   max(c.member COLLATE "C"), count(*)
            FROM (
                SELECT s.* FROM truerank.standing AS s
                WHERE (s.ranking, s.member) > (v_from, v_after)
                  AND s.ranking < (v_board::bigint + 1) << 36
                ORDER BY s.ranking, s.member LIMIT v_left
            ) AS c
            GROUP BY c.ranking ORDER BY c.ranking
        LOOP
            v_left := v_left - v_rows;
            equal_bytes := truerank.equal_bytes(ranking);
            RETURN NEXT;
        END LOOP;
        EXIT WHEN v_left <= 0;
    END LOOP;
END
$$;
