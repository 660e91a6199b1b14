-- rebuilds: what became of requests, with the progress of their copies.
--
-- Without p_ids: those that are open. state: asked, filling, checking, switched or failed. rows are
-- what the scan has brought in, of rows_about. leased: a worker holds the group.
CREATE OR REPLACE FUNCTION truerank.rebuilds(p_ids bigint[] DEFAULT NULL)
RETURNS TABLE (id bigint, grp smallint, kind text, cause text, asked_by text, asked_at timestamptz,
               state text, rows bigint, rows_about bigint, checked bigint, tries integer,
               leased boolean, ended_at timestamptz, code text, message text,
               kept_until timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, r.grp, r.kind, r.cause, r.asked_by, r.asked_at,
           CASE WHEN r.outcome IS NOT NULL THEN r.outcome
                WHEN g.state IS NULL OR g.state <> 'warming' THEN 'asked'
                WHEN g.checked > 0 THEN 'checking' ELSE 'filling' END,
           coalesce(g.rows, 0), coalesce(g.rows_about, 0), coalesce(g.checked, 0), r.tries,
           EXISTS (SELECT FROM truerank.lease AS l
                   WHERE l.grp = r.grp AND l.worker IS NOT NULL
                     AND l.expires_at > clock_timestamp()),
           r.ended_at, r.code, r.message,
           (SELECT max(f.kept_until) FROM truerank.generation AS f
            WHERE f.grp = r.grp AND f.state = 'former')
    FROM truerank.rebuild AS r LEFT JOIN truerank.generation AS g ON g.id = r.generation
    WHERE CASE WHEN p_ids IS NULL THEN r.ended_at IS NULL ELSE r.id = ANY (p_ids) END
    ORDER BY r.grp, r.id
$$;
