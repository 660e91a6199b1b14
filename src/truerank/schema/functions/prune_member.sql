-- prune_member: forget a slice of one member's events before the board's horizon.
--
-- What they come to is carried over first, for each season that begins before the horizon and
-- goes on after it (p_seasons): a recompute there begins with it. Of a member into which others
-- were merged, its own events: theirs are carried over under their own ids. A season that ended before the
-- horizon is never computed again; its standings stay as they are.
-- The slice ends between two instants, so it may be larger than p_rows_max. Voids and amendments
-- go with their events. Standings are not touched.
-- The caller has made sure that no transaction is open which could add or correct such an event.
-- Returns: events removed; -1 where the sum of a prefix of the history would leave 64 bits, which
--          the whole does not: that history is kept.
CREATE OR REPLACE FUNCTION truerank.prune_member(
    p_board truerank.board, p_seasons truerank.season[], p_member text, p_rows_max integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_first timestamptz;
    v_until timestamptz;
    v_removed bigint;
    v_stubs bigint;
BEGIN
    SELECT min(e.occurred_at) INTO v_first FROM truerank.event AS e
    WHERE e.board_id = p_board.id AND e.member = p_member AND e.kind = 's'
      AND e.occurred_at < p_board.history_from;
    IF v_first IS NULL THEN
        RETURN 0;
    END IF;
    SELECT e.occurred_at INTO v_until FROM truerank.event AS e
    WHERE e.board_id = p_board.id AND e.member = p_member AND e.kind = 's'
      AND e.occurred_at < p_board.history_from
    ORDER BY e.occurred_at OFFSET p_rows_max LIMIT 1;
    v_until := CASE WHEN v_until IS NULL THEN p_board.history_from
                    ELSE greatest(v_until, v_first + interval '1 microsecond') END;

    IF p_board.operator = 'sum' THEN
        PERFORM FROM unnest(p_seasons) AS r
        CROSS JOIN LATERAL (
            SELECT ARRAY[sum(e.value), sum(e.ties[1]), sum(e.ties[2]), sum(e.ties[3]),
                         sum(e.ties[4])] AS sums
            FROM truerank.live_events(p_board.id, r.ranking, ARRAY[p_member], r.starts_at, v_until) AS e
        ) AS s
        WHERE 9223372036854775807 < ANY (s.sums) OR -9223372036854775808 > ANY (s.sums);
        IF FOUND THEN
            RETURN -1;
        END IF;
    END IF;
    INSERT INTO truerank.opening AS o
        (ranking, member, events, score, ties, event_at, event_position, moved, reached_at,
         reached_position)
    SELECT r.ranking, p_member, n.events, f.score, f.ties, f.event_at, f.event_position, f.moved,
           f.reached_at, f.reached_position
    FROM unnest(p_seasons) AS r
    CROSS JOIN LATERAL truerank.fold_events(
        p_board, r.ranking, ARRAY[p_member], r.starts_at, v_until) AS f
    CROSS JOIN LATERAL (
        SELECT count(*) AS events FROM truerank.live_events(
            p_board.id, 0, ARRAY[p_member], r.starts_at, v_until)) AS n
    ON CONFLICT (ranking, member) DO UPDATE SET
        events = o.events + excluded.events, score = excluded.score, ties = excluded.ties,
        event_at = excluded.event_at, event_position = excluded.event_position,
        moved = excluded.moved, reached_at = excluded.reached_at,
        reached_position = excluded.reached_position
    WHERE excluded.events > 0;

    UPDATE truerank.pruning AS p SET exact_from = x.exact_from
    FROM (SELECT max(greatest(e.received_at, e.ended_at)) AS exact_from FROM truerank.event AS e
          WHERE e.board_id = p_board.id AND e.member = p_member AND e.occurred_at < v_until) AS x
    WHERE p.board_id = p_board.id AND p.exact_from < x.exact_from;
    UPDATE truerank.event AS e SET
        kind = 'f', member = '', value = 0, ties = NULL, metadata = NULL, source = NULL
    WHERE e.board_id = p_board.id AND e.member = p_member AND e.kind = 's'
      AND e.occurred_at < v_until AND NOT e.occurred_given;
    GET DIAGNOSTICS v_stubs = ROW_COUNT;
    WITH gone AS (
        DELETE FROM truerank.event AS e
        WHERE e.board_id = p_board.id AND e.member = p_member AND e.occurred_at < v_until
        RETURNING e.kind
    )
    SELECT v_stubs + count(*) FILTER (WHERE g.kind = 's') INTO v_removed FROM gone AS g;
    RETURN v_removed;
END
$$;
