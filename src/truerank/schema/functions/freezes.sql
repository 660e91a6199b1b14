-- freezes: which seasons are frozen or were, latest first; of one board, of all, or the one of an id.
CREATE OR REPLACE FUNCTION truerank.freezes(
    p_board text DEFAULT NULL, p_id bigint DEFAULT NULL, p_limit integer DEFAULT 100
) RETURNS TABLE (id bigint, board text, season text, due_at timestamptz, frozen_at timestamptz,
                 revealed_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT f.id, b.key, f.season, f.due_at, f.frozen_at, f.revealed_at
    FROM truerank.freeze AS f JOIN truerank.board AS b ON b.id = f.board_id
    WHERE (p_board IS NULL OR b.key = p_board AND b.deleted_at IS NULL)
      AND (p_id IS NULL OR f.id = p_id)
    ORDER BY f.id DESC LIMIT p_limit
$$;
