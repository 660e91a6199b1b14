-- remake_standings: compute standings of one ranking again from their events, whatever they say.
--
-- For members whose standing isn't what their events come to. Missing ones are made, those without
-- an event that counts go, and so do those under an id that was merged into another; the outbox
-- tells the projection. Of a cohort, those of its season are, and the cohort's follow. In the
-- caller's transaction.
-- Locks:   the board's advisory lock (shared), standings by member, and the events read later.
-- Returns: how many standings changed; -1 where the season takes no changes.
-- Raises:  25001 above READ COMMITTED; numeric_value_out_of_range where a total leaves its range.
CREATE OR REPLACE FUNCTION truerank.remake_standings(p_ranking bigint, p_members text[])
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_of bigint := truerank.season_divided(p_ranking);
    v_board truerank.board;
    v_season truerank.season;
    v_owners text[];
    v_rankings bigint[];
    v_changed truerank.changed[];
    v_gone truerank.changed[];
BEGIN
    PERFORM truerank.need_read_committed();
    v_board := truerank.lock_board((SELECT b.key FROM truerank.board AS b
                                    WHERE b.id = p_ranking >> 36 AND b.deleted_at IS NULL));
    PERFORM FROM truerank.pruning AS p WHERE p.board_id = v_board.id FOR SHARE;
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = v_board.id;
    v_season := truerank.season_of_ranking(v_board, v_of);
    IF v_board.id IS NULL OR v_season.ends_at <= v_board.history_from OR EXISTS (
        SELECT FROM truerank.ranking AS r
        WHERE r.id = v_of AND (r.state <> 'open' OR r.kind <> 'live')) THEN
        RETURN -1;
    END IF;
    v_owners := ARRAY(SELECT DISTINCT truerank.owner_of(m) COLLATE "C" AS owner
                      FROM unnest(p_members) AS m ORDER BY owner);
    v_rankings := array_fill(v_of, ARRAY[cardinality(v_owners)]);
    -- Rows must be there to be locked; they draw their versions when they are computed again.
    PERFORM truerank.fold_missing(v_board, ARRAY[v_season], v_rankings, v_owners);
    SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
        v_board, ARRAY[v_season], v_rankings, v_owners) AS c;
    WITH gone AS (
        DELETE FROM truerank.standing AS s
        WHERE s.member = ANY (p_members) AND (
            s.ranking = v_of AND s.member <> ALL (v_owners)
            OR s.ranking = p_ranking AND p_ranking <> v_of AND NOT EXISTS (
                SELECT FROM truerank.cohort_member AS m
                WHERE m.season = v_of AND m.member = s.member AND m.cohort = p_ranking))
        RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
    )
    SELECT array_agg((g.*)::truerank.changed) INTO v_gone FROM gone AS g;
    PERFORM truerank.log_changes(v_board.grp, pg_current_xact_id(), v_changed || v_gone);
    IF EXISTS (SELECT FROM truerank.cohort AS c WHERE c.season = v_of) THEN
        -- Also where nothing changed in the season.
        PERFORM truerank.mirror_changes(v_board.grp, pg_current_xact_id(), ARRAY(
            SELECT (v_of, m, NULL, 0, NULL)::truerank.changed
            FROM (SELECT unnest(p_members) UNION SELECT unnest(v_owners)) AS u (m)));
    END IF;
    RETURN coalesce(cardinality(v_changed), 0) + coalesce(cardinality(v_gone), 0);
END
$$;
