-- scan_group: a chunk of a group's standings in order of ranking and member, for filling a copy.
--
-- p_ranking and p_member name the last standing of the chunk before; both null at the start.
-- Returns: one row per ranking, packed like read_batch, with the last member of the part; no
--          rows when the scan is done.
CREATE OR REPLACE FUNCTION truerank.scan_group(
    p_grp smallint, p_ranking bigint, p_member text, p_rows_max integer
) RETURNS TABLE (ranking bigint, key_bytes integer, packed bytea[], last_member text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_left integer := p_rows_max;
    v_board integer;
    v_rows integer;
    v_from bigint := p_ranking;
    v_after text := p_member;
BEGIN
    FOR v_board IN
        SELECT b.id FROM truerank.board AS b
        WHERE b.grp = p_grp AND (p_ranking IS NULL OR b.id >= p_ranking >> 36) ORDER BY b.id
    LOOP
        IF v_from IS NULL OR v_board > v_from >> 36 THEN
            v_from := v_board::bigint << 36;
            v_after := '';
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
            RETURN NEXT;
        END LOOP;
        EXIT WHEN v_left <= 0;
    END LOOP;
END
$$;
