-- fold_stored: bring the standings up to the events just stored, and log what changed.
--
-- Locks:   standings in order of ranking and member.
-- Returns: what changed, with versions.
-- Raises:  numeric_value_out_of_range where a total leaves the board's range; TR001 where a
--          member has more events in this minute than the board allows.
CREATE OR REPLACE FUNCTION truerank.fold_stored(
    p_board truerank.board, p_seasons truerank.season[], p_event truerank.prepared_events,
    p_done truerank.stored_events, p_members text[], p_ties bigint[]
) RETURNS truerank.changed[]
LANGUAGE plpgsql AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
    v_members text[] := p_members;
    v_values bigint[] := p_event.values;
    v_ties bigint[] := p_ties;
    v_at timestamptz[] := p_event.at;
    v_positions bigint[] := p_event.positions;
    v_seasons truerank.season[] := p_seasons;
    v_changed truerank.changed[];
BEGIN
    IF p_done.stored_n < cardinality(p_members) THEN
        SELECT array_agg(u.member ORDER BY u.ord), array_agg(u.value ORDER BY u.ord),
               array_agg(u.at ORDER BY u.ord), array_agg(u.position ORDER BY u.ord)
        INTO v_members, v_values, v_at, v_positions
        FROM unnest(p_members, p_event.values, p_event.at, p_event.positions)
            WITH ORDINALITY AS u (member, value, at, position, ord)
        JOIN unnest(p_done.stored) AS s ON s = u.position;
        IF v_tie_n > 0 THEN
            v_ties := ARRAY(
                SELECT p_ties[(u.ord - 1) * v_tie_n + i]
                FROM unnest(p_event.positions) WITH ORDINALITY AS u (position, ord)
                JOIN unnest(p_done.stored) AS s ON s = u.position
                CROSS JOIN generate_series(1, v_tie_n) AS i
                ORDER BY u.ord, i);
        END IF;
    END IF;

    IF p_board.rate_max IS NOT NULL THEN
        PERFORM truerank.count_rates(p_board, p_event.received_at, v_members);
    END IF;
    IF cardinality(p_board.filling) > 0 THEN
        SELECT array_agg(s) INTO v_seasons FROM unnest(p_seasons) AS s
        WHERE NOT s.period = ANY (p_board.filling);
    END IF;
    IF p_board.operator = 'sum' THEN
        SELECT array_agg(c) INTO v_changed FROM truerank.upsert_sum(
            p_board, v_seasons, v_members, v_values, v_ties, v_at, v_positions) AS c;
        PERFORM truerank.check_totals(
            p_board, v_seasons, v_changed, v_members, v_values, v_at, v_ties);
    ELSIF p_board.operator = 'best' THEN
        SELECT array_agg(c) INTO v_changed FROM truerank.upsert_best(
            p_board, v_seasons, v_members, v_values, v_ties, v_at, v_positions) AS c;
    ELSE
        SELECT array_agg(c) INTO v_changed FROM truerank.upsert_latest(
            p_board, v_seasons, v_members, v_values, v_ties, v_at, v_positions) AS c;
    END IF;
    IF cardinality(p_board.filling) > 0 THEN
        v_changed := v_changed || truerank.fold_filling(p_board, p_seasons, v_members, v_at);
    END IF;
    RETURN truerank.log_changes(p_board.grp, p_done.xid, v_changed);
END
$$;
