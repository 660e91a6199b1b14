-- next_end: when the next season of a board may be closed, after an instant at which none may.
CREATE OR REPLACE FUNCTION truerank.next_end(p_board truerank.board, p_at timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT coalesce(min(truerank.closes_at(p_board, n.ends_at)), 'infinity')
    FROM (
        SELECT truerank.period_start(p.period, p_board.zone, truerank.period_index(
                   p.period, p_board.zone, p_at - coalesce(p_board.late_grace, interval '0')) + 1)
                   AS ends_at
        FROM unnest(p_board.seasons) AS p (period)
        WHERE p.period <> 'all' AND NOT p.period = ANY (p_board.filling)
        UNION ALL
        SELECT r.ends_at FROM truerank.ranking AS r
        WHERE r.board_id = p_board.id AND r.period = 'custom' AND r.kind = 'live'
          AND truerank.closes_at(p_board, r.ends_at) > p_at
    ) AS n
$$;
