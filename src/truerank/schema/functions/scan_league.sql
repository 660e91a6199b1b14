-- scan_league: have a slice of the standings from before a league divided.
--
-- Not before all writers have ended that may not know of the league: later ones do it themselves.
-- In the caller's transaction, which holds the league's row locked.
-- Returns: how many standings were looked at; 0 where it has to wait, or everything is scanned.
CREATE OR REPLACE FUNCTION truerank.scan_league(p_league truerank.league, p_rows_max integer)
RETURNS integer
-- Of a season that is new to the statistics the planner expects nothing, and takes any index.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_board truerank.board;
    v_ranking bigint;
    v_members text[];
    v_last bigint := greatest(p_league.scanned_ranking, p_league.from_ranking);
BEGIN
    -- A number that is yet to come is another cluster's, from which a dump brought it.
    IF p_league.barrier_xid IS NULL OR p_league.barrier_xid > pg_current_xact_id() THEN
        p_league.barrier_xid := pg_current_xact_id();
        UPDATE truerank.league AS l SET barrier_xid = p_league.barrier_xid WHERE l.id = p_league.id;
    END IF;
    IF EXISTS (SELECT FROM truerank.writers_before(p_league.board_id, p_league.barrier_xid)) THEN
        RETURN 0;
    END IF;
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_league.board_id;
    -- Of one ranking at a time, in order of members.
    SELECT s.ranking INTO v_ranking FROM truerank.standing AS s
    WHERE (s.ranking, s.member) > (v_last, CASE WHEN v_last = p_league.scanned_ranking
                                                THEN p_league.scanned_member ELSE '' END)
      AND s.ranking < p_league.to_ranking
    ORDER BY s.ranking, s.member LIMIT 1;
    IF v_ranking IS NULL THEN
        UPDATE truerank.league AS l SET scanned = true WHERE l.id = p_league.id;
        RETURN 0;
    END IF;
    v_members := ARRAY(
        SELECT s.member FROM truerank.standing AS s
        WHERE s.ranking = v_ranking
          AND s.member > CASE WHEN v_ranking = p_league.scanned_ranking
                              THEN p_league.scanned_member ELSE '' END
        ORDER BY s.member LIMIT p_rows_max);
    IF NOT EXISTS (SELECT FROM truerank.ranking AS r
                   WHERE r.id = v_ranking AND r.state = 'final') THEN
        -- Locked, so that a standing doesn't go while it is said to wait.
        INSERT INTO truerank.cohort_member AS m (season, member, first_position)
        SELECT v_ranking, s.member, coalesce(least(e.position, s.event_position), s.event_position)
        FROM (
            SELECT x.member, x.event_position FROM truerank.standing AS x
            WHERE x.ranking = v_ranking AND x.member = ANY (v_members)
            ORDER BY x.member FOR UPDATE
        ) AS s
        CROSS JOIN truerank.season_of_ranking(v_board, v_ranking) AS n
        CROSS JOIN LATERAL (
            SELECT min(x.position) AS position FROM truerank.event AS x
            WHERE x.board_id = v_board.id AND x.member = ANY (truerank.names_of(s.member))
              AND x.kind = 's' AND x.occurred_at >= n.starts_at AND x.occurred_at < n.ends_at
        ) AS e
        -- Of who changed its score meanwhile that event alone is known.
        ON CONFLICT (season, member) DO UPDATE SET first_position = excluded.first_position
        WHERE m.cohort IS NULL AND m.first_position > excluded.first_position;
    END IF;
    UPDATE truerank.league AS l SET
        scanned_ranking = v_ranking, scanned_member = v_members[cardinality(v_members)]
    WHERE l.id = p_league.id;
    RETURN cardinality(v_members);
END
$$;
