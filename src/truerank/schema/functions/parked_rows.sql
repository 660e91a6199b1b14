-- parked_rows: what boards did not take from attached tables, the oldest first, p_limit at most.
--
-- occurred_at is text, for it may be what no clock shows: infinity.
-- p_attachment null: of all; p_after continues after an id; p_done also what is done with.
CREATE OR REPLACE FUNCTION truerank.parked_rows(
    p_attachment integer, p_after bigint, p_limit integer, p_done boolean DEFAULT false
) RETURNS TABLE (
    id bigint, attachment integer, board text, source text, action text, event_id text,
    member text, value text, occurred_at text, ties bigint[], code text, message text,
    parked_at timestamptz, tries integer, tried_at timestamptz, done text, done_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.id, p.attachment_id, b.key, a.source, p.action, p.event_id, p.member, p.value::text,
           CASE WHEN isfinite(p.occurred_at) THEN to_char(
               p.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
           ELSE p.occurred_at::text END, p.ties, p.code, p.message, p.parked_at, p.tries, p.tried_at, p.done,
           p.done_at
    FROM truerank.parked AS p
    JOIN truerank.attachment AS a ON a.id = p.attachment_id
    JOIN truerank.board AS b ON b.id = a.board_id
    WHERE (p_attachment IS NULL OR p.attachment_id = p_attachment) AND p.id > coalesce(p_after, 0)
      AND (p_done OR p.done_at IS NULL)
    ORDER BY p.id LIMIT p_limit
$$;
