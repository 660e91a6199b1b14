-- submit_scores: apply a batch of score events to one board, in the caller's transaction.
--
-- p_values are in the board's unit, with at most as many places as it has decimals. p_occurred_at null, or an element
-- null: the server's clock. p_ties holds the tie-breaks row after row. Where p_expected_season is
-- given, an event that doesn't fall into that season is refused; where p_expected_operator is (sum,
-- best or latest), all of them on a board with another one. p_source is kept with new events. At
-- most 100,000 events. Days in the board's rules are 24 hours, whatever the session's time zone.
-- Events of an id that was merged count for the member it was merged into.
--
-- Repeat:  an event already stored with the same content adds nothing; outcome = duplicate, with
--          the standing as it is now and the first write's token. Other content: conflict.
-- Locks:   the board's advisory lock (shared), events in order of event id, then standings in
--          order of ranking and member. A batch with an event whose total is out of range is
--          taken apart, which may lock in another order: then 40P01 is possible, and retried.
-- Returns: one row per event and season, in the order given (see truerank.receipt). Expected
--          outcomes are values: raising would end the caller's transaction.
-- Raises:  40001 at REPEATABLE READ and above, where a duplicate or a close is concurrent;
--          22023 where the arrays differ in length.
CREATE OR REPLACE FUNCTION truerank.submit_scores(
    p_board text, p_event_ids text[], p_members text[], p_values numeric[],
    p_occurred_at timestamptz[] DEFAULT NULL, p_ties bigint[] DEFAULT NULL,
    p_metadata jsonb[] DEFAULT NULL, p_expected_season text DEFAULT NULL,
    p_source text DEFAULT NULL, p_expected_operator text DEFAULT NULL
) RETURNS SETOF truerank.receipt
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    v_n integer := cardinality(p_event_ids);
    v_half integer := v_n / 2;
    v_tie_n integer;
    v_board truerank.board;
    v_seasons truerank.season[];
    v_event truerank.prepared_events;
    v_done truerank.stored_events;
    v_changed truerank.changed[];
    v_owners text[];
BEGIN
    IF v_n = 0 THEN
        RETURN;
    END IF;
    IF v_n > 100000 THEN
        RETURN QUERY SELECT g, 'refused', 'batch_too_large', NULL::text, NULL::numeric,
                            NULL::bigint, NULL::xid8 FROM generate_series(1, v_n) AS g;
        RETURN;
    END IF;
    -- Slices and subscripts below count from 1, in one dimension.
    p_event_ids := truerank.flat(p_event_ids);
    p_members := truerank.flat(p_members);
    p_values := truerank.flat(p_values);
    p_occurred_at := truerank.flat(p_occurred_at);
    p_ties := truerank.flat(p_ties);
    p_metadata := truerank.flat(p_metadata);
    v_board := truerank.lock_board(p_board);
    IF v_board.id IS NULL THEN
        RETURN QUERY SELECT g, 'refused', 'board_unknown', NULL::text, NULL::numeric, NULL::bigint,
                            NULL::xid8 FROM generate_series(1, v_n) AS g;
        RETURN;
    END IF;
    v_tie_n := cardinality(v_board.tie_names);
    IF v_n IS DISTINCT FROM cardinality(p_members) OR v_n IS DISTINCT FROM cardinality(p_values)
       OR v_n <> coalesce(cardinality(p_occurred_at), v_n)
       OR v_n <> coalesce(cardinality(p_metadata), v_n) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the arrays differ in length';
    ELSIF v_n * v_tie_n <> coalesce(cardinality(p_ties), 0) THEN
        RETURN QUERY SELECT g, 'refused', 'tie_count_wrong', NULL::text, NULL::numeric,
                            NULL::bigint, NULL::xid8 FROM generate_series(1, v_n) AS g;
        RETURN;
    END IF;

    -- Known to be under way before it looks for whom the events count: see sweep_members.
    PERFORM pg_current_xact_id();
    v_owners := truerank.owners_of(p_members);
    IF current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM truerank.lift_bans(v_owners, NULL);
    END IF;
    v_event := truerank.prepare_events(
        v_board, p_event_ids, p_members, p_values, p_occurred_at, p_ties, p_metadata,
        p_expected_operator);
    SELECT array_agg(s) INTO v_seasons FROM truerank.seasons_of(v_board, v_event.candidate_at) AS s;
    v_event.codes := truerank.judge_seasons(
        v_board, v_seasons, v_event.at, v_event.codes, p_expected_season, v_event.received_at,
        p_uuids => v_event.uuids);
    IF isfinite(v_board.history_from) THEN
        v_event.codes := truerank.judge_forgotten(v_board, v_event);
    END IF;

    BEGIN
        v_done := truerank.store_events(
            v_board, v_event, p_members, p_occurred_at, p_ties, p_metadata, p_source);
        IF v_done.stored_n > 0 THEN
            v_changed := truerank.fold_stored(
                v_board, v_seasons, v_event, v_done, v_owners, p_ties);
        END IF;
    EXCEPTION WHEN numeric_value_out_of_range OR SQLSTATE 'TR001' THEN
        -- Some total or rate left its range, and the block took the event rows back out. One
        -- event is refused; of several, only those that don't fit: halve, in the caller's order.
        IF v_n = 1 THEN
            RETURN QUERY SELECT 1, 'refused',
                                CASE SQLSTATE WHEN 'TR001' THEN 'rate_exceeded'
                                     ELSE 'total_out_of_range' END, NULL::text, NULL::numeric,
                                NULL::bigint, NULL::xid8;
            RETURN;
        END IF;
        RETURN QUERY SELECT * FROM truerank.submit_scores(
            p_board, p_event_ids[:v_half], p_members[:v_half], p_values[:v_half],
            p_occurred_at[:v_half], p_ties[:v_half * v_tie_n], p_metadata[:v_half],
            p_expected_season, p_source, p_expected_operator);
        RETURN QUERY SELECT v_half + r.ord, r.outcome, r.code, r.season, r.score, r.version,
                            r.token
        FROM truerank.submit_scores(
            p_board, p_event_ids[v_half + 1:], p_members[v_half + 1:], p_values[v_half + 1:],
            p_occurred_at[v_half + 1:], p_ties[v_half * v_tie_n + 1:], p_metadata[v_half + 1:],
            p_expected_season, p_source, p_expected_operator) AS r;
        RETURN;
    END;

    RETURN QUERY SELECT r.* FROM truerank.receipts(
        v_board, v_seasons, v_event, v_done, v_owners, v_changed) AS r;
END
$$;
