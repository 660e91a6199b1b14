-- freezes: which seasons are frozen or were, latest first; of one board, of all, or the one of an id.
--
-- together: the seasons that are frozen at one instant in one step; empty: it alone is. public: seasons
-- that hold then, or now, and that the public is shown as they are; empty once it is revealed.
CREATE OR REPLACE FUNCTION truerank.freezes(
    p_board text DEFAULT NULL, p_id bigint DEFAULT NULL, p_limit integer DEFAULT 100
) RETURNS TABLE (id bigint, board text, season text, due_at timestamptz, frozen_at timestamptz,
                 revealed_at timestamptz, together text[], public text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT f.id, b.key, f.season, f.due_at, f.frozen_at, f.revealed_at,
           ARRAY(SELECT x.season FROM truerank.freeze AS x
                 WHERE x.board_id = f.board_id AND x.together = f.together ORDER BY x.ranking),
           CASE WHEN f.revealed_at IS NULL THEN ARRAY(
               SELECT n.label FROM truerank.seasons_now(b, greatest(f.due_at, now())) AS n
               WHERE n.ranking <> f.ranking AND NOT EXISTS (
                   SELECT FROM truerank.freeze AS x
                   WHERE x.ranking = n.ranking AND x.revealed_at IS NULL
                     AND (x.frozen_at IS NOT NULL OR x.due_at <= greatest(f.due_at, now()))))
           ELSE '{}' END
    FROM truerank.freeze AS f JOIN truerank.board AS b ON b.id = f.board_id
    WHERE (p_board IS NULL OR b.key = p_board AND b.deleted_at IS NULL)
      AND (p_id IS NULL OR f.id = p_id)
    ORDER BY f.id DESC LIMIT p_limit
$$;
