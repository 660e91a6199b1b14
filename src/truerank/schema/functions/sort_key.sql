-- sort_key: the bytes by which a standing is ordered, best first.
--
-- Score (8 bytes, turned for its direction), each tie-break (8 bytes, likewise), the instant the
-- score was reached (8 bytes, microseconds), the position of that event (8 bytes).
-- p_tie_bytes comes from truerank.tie_bytes and is empty on boards without tie-breaks.
CREATE OR REPLACE FUNCTION truerank.sort_key(
    p_score bigint, p_descending boolean, p_tie_bytes bytea,
    p_reached_at timestamptz, p_position bigint
) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT truerank.signed_bytes(CASE WHEN p_descending THEN ~p_score ELSE p_score END)
        || p_tie_bytes
        || truerank.signed_bytes(truerank.instant_us(p_reached_at))
        || truerank.signed_bytes(p_position)
$$;
