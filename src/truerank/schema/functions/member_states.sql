-- member_states: all that was said of a member: its states by board, and whom it was merged into.
--
-- Returns: one row per scope in which its state isn't active; board null: everywhere. merged_into
--          is told with state merged. No row: active on every board.
CREATE OR REPLACE FUNCTION truerank.member_states(p_member text)
RETURNS TABLE (board text, state text, until timestamptz, hides boolean, changed_at timestamptz,
               merged_into text)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.key, s.state, s.until, s.hides, s.changed_at,
           CASE s.state WHEN 'merged' THEN truerank.owner_of(p_member) END
    FROM truerank.member_state AS s
    LEFT JOIN truerank.board AS b ON b.id = s.board_id
    WHERE s.member = p_member AND s.state <> 'active'
      AND (s.board_id = 0 OR b.deleted_at IS NULL)
      -- Nothing was said of who came back after it was deleted.
      AND (s.state <> 'deleted' OR NOT EXISTS (
          SELECT FROM truerank.event AS e
          WHERE e.member = ANY (truerank.names_of(p_member)) AND e.kind = 's'
            AND e.ended_at IS NULL
            AND e.board_id IN (SELECT x.id FROM truerank.board AS x
                               WHERE s.board_id = 0 OR x.id = s.board_id)))
    ORDER BY b.key NULLS FIRST
$$;
