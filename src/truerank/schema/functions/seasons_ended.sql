-- seasons_ended: the seasons of a board that may be closed at an instant, and ended after the board
-- began to close them by itself.
--
-- Not custom ones that were made when their grace was over: their history is yet to come, and people
-- close them.
CREATE OR REPLACE FUNCTION truerank.seasons_ended(p_board truerank.board, p_at timestamptz)
RETURNS SETOF truerank.season
LANGUAGE sql STABLE AS $$
    SELECT truerank.ranking_id(p_board.id, p.period, i), p.period,
           truerank.period_label(p.period, i::integer), b.starts_at, b.ends_at
    FROM unnest(p_board.seasons) AS p (period)
    CROSS JOIN LATERAL generate_series(
        truerank.period_index(p.period, p_board.zone, p_board.auto_close_from)::bigint,
        truerank.period_index(p.period, p_board.zone,
                              p_at - coalesce(p_board.late_grace, interval '0'))::bigint) AS i
    CROSS JOIN LATERAL (
        SELECT truerank.period_start(p.period, p_board.zone, i::integer) AS starts_at,
               truerank.period_start(p.period, p_board.zone, i::integer + 1) AS ends_at) AS b
    WHERE p.period <> 'all' AND NOT p.period = ANY (p_board.filling)
      AND b.ends_at > p_board.auto_close_from AND truerank.closes_at(p_board, b.ends_at) <= p_at
    UNION ALL
    SELECT r.id, r.period, r.season, r.starts_at, r.ends_at FROM truerank.ranking AS r
    WHERE r.board_id = p_board.id AND r.period = 'custom' AND r.kind = 'live'
      AND r.ends_at > p_board.auto_close_from AND truerank.closes_at(p_board, r.ends_at) <= p_at
      AND (r.made_at IS NULL OR truerank.closes_at(p_board, r.ends_at) > r.made_at)
$$;
