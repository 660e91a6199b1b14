-- recount_slice: the next members of a ranking whose standing isn't what their events come to.
--
-- Walks the ids of members that have a standing in the ranking, an event on its board or forgotten
-- events, in their order after p_after ('' at the start), at most p_members_max of them. Called
-- again and again in one REPEATABLE READ transaction, it looks at one state of the board.
-- kind: missing (events, and no standing), extra (a standing, and no event that counts), different.
-- An id that was merged into another must have no standing: its events are the other's.
-- Returns: first one row with kind null: the last id walked (null: none was left), and how many;
--          then one row per difference, with what is stored and what the events come to, each null
--          where there is none.
-- Raises:  object_not_in_prerequisite_state where the season ended before the board's history
--          begins: its events are forgotten, and the standings are all that is left of them.
CREATE OR REPLACE FUNCTION truerank.recount_slice(
    p_ranking bigint, p_after text, p_members_max integer
) RETURNS TABLE (member text, kind text, members integer, stored_score numeric,
                 stored_version bigint, stored_key bytea, counted_score numeric, counted_key bytea)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_season truerank.season;
    v_walked text[];
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_ranking >> 36;
    v_season := truerank.season_of_ranking(v_board, p_ranking);
    IF v_season.ends_at <= v_board.history_from THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE =
            'the events of this season are forgotten';
    END IF;
    IF truerank.season_divided(p_ranking) <> p_ranking THEN
        RETURN QUERY SELECT c.* FROM truerank.recount_cohort(
            v_board, p_ranking, p_after, p_members_max) AS c;
        RETURN;
    END IF;
    -- From id to id, not from event to event: each costs one look at each of three indices.
    WITH RECURSIVE walk AS (
        SELECT p_after COLLATE "C" AS id, 0 AS n
        UNION ALL
        SELECT least(
                   (SELECT s.member FROM truerank.standing AS s
                    WHERE s.ranking = p_ranking AND s.member > w.id ORDER BY s.member LIMIT 1),
                   (SELECT e.member FROM truerank.event AS e
                    WHERE e.board_id = v_board.id AND e.member > w.id ORDER BY e.member LIMIT 1),
                   (SELECT o.member FROM truerank.opening AS o
                    WHERE o.ranking = p_ranking AND o.member > w.id ORDER BY o.member LIMIT 1)),
               w.n + 1
        FROM walk AS w WHERE w.id IS NOT NULL AND w.n < p_members_max
    )
    SELECT array_agg(w.id ORDER BY w.n) FILTER (WHERE w.n > 0 AND w.id IS NOT NULL)
    INTO v_walked FROM walk AS w;
    member := v_walked[cardinality(v_walked)];
    members := coalesce(cardinality(v_walked), 0);
    RETURN NEXT;
    RETURN QUERY
    SELECT u.id, CASE WHEN s.member IS NULL THEN 'missing'
                      WHEN f.sort_key IS NULL THEN 'extra' ELSE 'different' END,
           NULL::integer, truerank.in_units(s.score, v_board.decimals), s.version, s.sort_key,
           truerank.in_units(f.score, v_board.decimals), f.sort_key
    FROM (
        SELECT w.id, truerank.owner_of(w.id) = w.id AS owns FROM unnest(v_walked) AS w (id)
        UNION
        -- Of whom only merged ids have events, the walk doesn't come by.
        SELECT truerank.owner_of(w.id), true FROM unnest(v_walked) AS w (id)
    ) AS u
    LEFT JOIN LATERAL truerank.fold_events(
        v_board, p_ranking, truerank.names_of(u.id), v_season.starts_at, v_season.ends_at) AS f
      ON u.owns
    LEFT JOIN truerank.standing AS s ON s.ranking = p_ranking AND s.member = u.id
    WHERE (s.score, s.ties, s.event_at, s.event_position, s.moved, s.sort_key) IS DISTINCT FROM
          (f.score, f.ties, f.event_at, f.event_position, f.moved, f.sort_key)
    ORDER BY 1;
END
$$;
