-- shown_ranking: what the public is shown in place of a ranking.
--
-- Returns: one row where it is frozen: the ranking that shows it as it was, since when, whether
--          the projection may have it, and the privacy tick of its group, from which on it has.
CREATE OR REPLACE FUNCTION truerank.shown_ranking(p_ranking bigint)
RETURNS TABLE (ranking bigint, frozen_at timestamptz, logged boolean, privacy_tick bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT truerank.frozen_id(f.board_id, f.id), f.frozen_at, f.logged,
           truerank.privacy_tick(b.grp)
    FROM truerank.freeze AS f JOIN truerank.board AS b ON b.id = f.board_id
    WHERE f.ranking = p_ranking AND f.revealed_at IS NULL AND f.frozen_at IS NOT NULL
$$;
