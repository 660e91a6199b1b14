-- seasons: the seasons of a board in which something happened, and its custom ones, latest first.
--
-- An unbounded end is null. The last columns are those of find_season; frozen_at: the public is shown
-- it as it was then.
CREATE OR REPLACE FUNCTION truerank.seasons(
    p_board_id integer, p_period text DEFAULT NULL, p_limit integer DEFAULT 1000,
    p_offset integer DEFAULT 0
) RETURNS TABLE (ranking bigint, period text, label text, starts_at timestamptz,
                 ends_at timestamptz, state text, closes_at timestamptz,
                 hold_until timestamptz, settled_at timestamptz, revision integer,
                 frozen_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, r.period, r.season, nullif(r.starts_at, '-infinity'),
           nullif(r.ends_at, 'infinity'), r.state,
           nullif(truerank.closes_at(b, r.ends_at), 'infinity'), r.hold_until, r.settled_at,
           r.revision, f.frozen_at
    FROM truerank.ranking AS r JOIN truerank.board AS b ON b.id = r.board_id
    LEFT JOIN truerank.freeze AS f ON f.ranking = r.id AND f.revealed_at IS NULL
    WHERE NOT r.period = ANY (b.filling) AND r.board_id = p_board_id AND r.kind = 'live' AND r.cohort = ''
      AND (p_period IS NULL OR r.period = p_period)
    ORDER BY r.period = 'all' DESC, r.starts_at DESC, r.id DESC
    LIMIT p_limit OFFSET p_offset
$$;
