-- has_history: whether a member has events on a board, or may have had some that are forgotten.
-- On a board that is deleted nobody has: what is left there is only to be purged.
--
-- The order makes the planner walk the index: of a member it hopes to meet soon, it would read the
-- whole table.
CREATE OR REPLACE FUNCTION truerank.has_history(p_board truerank.board, p_names text[])
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p_board.deleted_at IS NULL AND (isfinite(p_board.history_from) OR EXISTS (
        SELECT FROM unnest(p_names) AS n (name)
        CROSS JOIN LATERAL (
            SELECT FROM truerank.event AS e
            WHERE e.board_id = p_board.id AND e.member = n.name
            ORDER BY e.occurred_at LIMIT 1
        ) AS e))
$$;
