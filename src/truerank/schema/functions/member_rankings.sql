-- member_rankings: every ranking in which a member may have a standing.
--
-- p_board_id 0: on all boards; p_grp not null: of one group only. From the events' times, so that
-- it costs a look at an index per season of the member, however many the board has; only where
-- events may be forgotten, all rankings of the board are looked at. Rankings in which all events
-- are void, or have ended, are named as well. Some may be named twice. Cohorts aren't among them:
-- what they hold follows their season.
CREATE OR REPLACE FUNCTION truerank.member_rankings(
    p_member text, p_board_id integer, p_grp smallint DEFAULT NULL
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_names text[] := truerank.names_of(p_member);
    v_board truerank.board;
    v_period text;
    v_index integer;
    v_from timestamptz;
BEGIN
    FOR v_board IN
        SELECT b.* FROM truerank.board AS b
        WHERE (p_board_id = 0 OR b.id = p_board_id) AND (p_grp IS NULL OR b.grp = p_grp)
          AND truerank.has_history(b, v_names)
        ORDER BY b.id
    LOOP
        FOREACH v_period IN ARRAY v_board.seasons LOOP
            v_from := '-infinity';
            LOOP
                -- From season to season, not from event to event.
                SELECT min(e.occurred_at) INTO v_from
                FROM unnest(v_names) AS n (name)
                CROSS JOIN LATERAL (
                    SELECT x.occurred_at FROM truerank.event AS x
                    WHERE x.board_id = v_board.id AND x.member = n.name
                      AND x.occurred_at >= v_from
                    ORDER BY x.occurred_at LIMIT 1
                ) AS e;
                EXIT WHEN v_from IS NULL;
                v_index := truerank.period_index(v_period, v_board.zone, v_from);
                RETURN NEXT truerank.ranking_id(v_board.id, v_period, v_index);
                v_from := truerank.period_start(v_period, v_board.zone, v_index + 1);
                EXIT WHEN v_from = 'infinity';
            END LOOP;
        END LOOP;
        IF isfinite(v_board.history_from) THEN
            RETURN QUERY
            WITH RECURSIVE walk AS (
                SELECT v_board.id::bigint << 36 AS ranking
                UNION ALL
                SELECT (SELECT s.ranking FROM truerank.standing AS s
                        WHERE s.ranking > w.ranking AND s.ranking < truerank.cohort_id(v_board.id, 0)
                        ORDER BY s.ranking LIMIT 1)
                FROM walk AS w WHERE w.ranking IS NOT NULL
            )
            SELECT w.ranking FROM walk AS w
            WHERE EXISTS (SELECT FROM truerank.standing AS s
                          WHERE s.ranking = w.ranking AND s.member = ANY (v_names));
        END IF;
        RETURN QUERY
        SELECT r.id FROM truerank.ranking AS r
        WHERE r.board_id = v_board.id AND (
            r.kind = 'frozen' OR r.kind = 'live' AND r.period = 'custom' AND EXISTS (
                SELECT FROM truerank.event AS e
                WHERE e.board_id = v_board.id AND e.member = ANY (v_names)
                  AND e.occurred_at >= r.starts_at AND e.occurred_at < r.ends_at));
    END LOOP;
END
$$;
