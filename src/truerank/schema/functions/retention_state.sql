-- retention_state: how far the history of boards with an end has been forgotten.
--
-- waiting: events are to be removed, and transactions that were open before are waited for.
-- Returns: one row per board that has a retention or has ever forgotten events.
CREATE OR REPLACE FUNCTION truerank.retention_state()
RETURNS TABLE (board text, retention interval, history_from timestamptz, began_at timestamptz,
               ended_at timestamptz, removed bigint, waiting boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.key, b.retention, nullif(b.history_from, '-infinity'), p.began_at, p.ended_at,
           coalesce(p.removed, 0),
           p.board_id IS NOT NULL AND p.ended_at IS NULL
           AND coalesce(pg_snapshot_xmin(pg_current_snapshot()) < p.barrier, true)
    FROM truerank.board AS b LEFT JOIN truerank.pruning AS p ON p.board_id = b.id
    WHERE b.deleted_at IS NULL AND (b.retention IS NOT NULL OR p.board_id IS NOT NULL)
    ORDER BY b.key
$$;
