-- submit_score: apply one score event, in the caller's transaction; see submit_scores.
--
-- Returns: one row per season of the event, or one row that says why it had no effect.
CREATE OR REPLACE FUNCTION truerank.submit_score(
    p_board text, p_event_id text, p_member text, p_value numeric,
    p_occurred_at timestamptz DEFAULT NULL, p_ties bigint[] DEFAULT NULL,
    p_metadata jsonb DEFAULT NULL, p_expected_season text DEFAULT NULL,
    p_expected_operator text DEFAULT NULL
) RETURNS SETOF truerank.receipt
LANGUAGE sql AS $$
    SELECT * FROM truerank.submit_scores(
        p_board, ARRAY[p_event_id], ARRAY[p_member], ARRAY[p_value], ARRAY[p_occurred_at],
        p_ties, ARRAY[p_metadata], p_expected_season, NULL, p_expected_operator)
$$;
