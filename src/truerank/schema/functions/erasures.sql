-- erasures: erasures under way and complete, latest first, or the one of an id; without any name.
--
-- state: erasing, or erased once nothing names the person any more. A digest is there from when no
-- event counts any more; see truerank.erasure.
CREATE OR REPLACE FUNCTION truerank.erasures(
    p_id uuid DEFAULT NULL, p_limit integer DEFAULT 100
) RETURNS TABLE (id uuid, state text, asked_at timestamptz, erased_at timestamptz,
                 stand_ins text[], events bigint, digest bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.id, CASE WHEN e.erased_at IS NULL THEN 'erasing' ELSE 'erased' END, e.asked_at,
           e.erased_at, e.stand_ins, e.events, e.digest
    FROM truerank.erasure AS e
    WHERE p_id IS NULL OR e.id = p_id
    ORDER BY e.asked_at DESC, e.id LIMIT p_limit
$$;
