-- event_rows: events as rows, each with the sort key it would have as a standing of its own.
CREATE OR REPLACE FUNCTION truerank.event_rows(
    p_board truerank.board, p_members text[], p_values bigint[], p_ties bigint[],
    p_at timestamptz[], p_positions bigint[]
) RETURNS TABLE (member text, value bigint, ties bigint[], at timestamptz, "position" bigint,
                 sort_key bytea)
LANGUAGE sql STABLE AS $$
    SELECT u.member, u.value, k.ties, u.at, u.position,
           truerank.sort_key(u.value, p_board.descending,
               CASE WHEN k.ties IS NULL THEN ''::bytea
                    ELSE truerank.tie_bytes(k.ties, p_board.tie_descending) END,
               u.at, u.position)
    FROM unnest(p_members, p_values, p_at, p_positions)
        WITH ORDINALITY AS u (member, value, at, position, ord)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN cardinality(p_board.tie_names) > 0 THEN
            p_ties[(u.ord - 1) * cardinality(p_board.tie_names) + 1
                   : u.ord * cardinality(p_board.tie_names)] END AS ties) AS k
$$;
