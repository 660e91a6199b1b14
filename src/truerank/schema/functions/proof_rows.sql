-- proof_rows: what single members of rankings are to be shown with, to compare a copy with.
--
-- Returns: one row per pair, in the given order: version and sort key, or null without a standing;
--          whether it takes no place; and the snapshot in which that is so.
CREATE OR REPLACE FUNCTION truerank.proof_rows(p_rankings bigint[], p_members text[])
RETURNS TABLE (shown bytea, withheld boolean, snapshot text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT int8send(s.version) || s.sort_key,
           EXISTS (SELECT FROM truerank.member_state AS m
                   WHERE m.member = u.member AND m.board_id IN (0, u.ranking >> 36)
                     AND m.state IN ('hidden', 'banned', 'merged')),
           pg_current_snapshot()::text
    FROM unnest(p_rankings, p_members) WITH ORDINALITY AS u (ranking, member, n)
    LEFT JOIN truerank.standing AS s ON s.ranking = u.ranking AND s.member = u.member
    ORDER BY u.n
$$;
