-- judge_seasons: refuse events of a season that is closed, unexpected, or of no season at all.
--
-- A bounded season takes events until it is closed, whenever that is; on boards with a late_grace
-- no longer than that after its end. That is not for seasons whose grace was over before there was
-- the board, or the custom season: of them comes history, until they are closed. Nor for those that
-- somebody opened again. An event goes into all its seasons or into none, so one closed season
-- refuses it: as season_final for ever, as season_sealed until it is settled, or opened again.
-- States are read after the board's lock; above READ COMMITTED the snapshot may be older than a
-- close or a change of a season, and then it fails with 40001.
-- p_received_at null: it is a correction, which comes whenever it comes.
-- p_closed: the states in which a season takes none.
-- p_uuids: of the events; one that stands in the place of another is refused by no season in which
--          that one is, but by a final one. See truerank.replacement.
-- Returns: the codes, in the caller's order.
CREATE OR REPLACE FUNCTION truerank.judge_seasons(
    p_board truerank.board, p_seasons truerank.season[], p_at timestamptz[], p_codes text[],
    p_expected_season text, p_received_at timestamptz, p_closed text[] DEFAULT '{sealed,final}',
    p_uuids uuid[] DEFAULT NULL
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    v_rankings bigint[] := ARRAY(SELECT s.ranking FROM unnest(p_seasons) AS s);
    v_expected bigint[] := ARRAY(SELECT s.ranking FROM unnest(p_seasons) AS s
                                 WHERE s.label = p_expected_season);
    v_closed bigint[];
    v_final bigint[];
    v_over bigint[] := '{}';
    v_codes text[];
    v_runs truerank.season_run[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM truerank.board AS b WHERE b.id = p_board.id FOR SHARE;
        PERFORM truerank.need_latest_seal();
        PERFORM FROM truerank.merge_fence FOR SHARE;  -- for whom it counts is read as of then, too
    END IF;
    SELECT coalesce(array_agg(r.id), '{}'),
           coalesce(array_agg(r.id) FILTER (WHERE r.state = 'final'), '{}')
    INTO v_closed, v_final
    FROM truerank.ranking AS r WHERE r.id = ANY (v_rankings) AND r.state = ANY (p_closed);
    IF p_board.late_grace IS NOT NULL THEN
        v_over := ARRAY(
            SELECT s.ranking FROM unnest(p_seasons) AS s
            LEFT JOIN truerank.ranking AS r ON r.id = s.ranking
            WHERE truerank.closes_at(p_board, s.ends_at) < p_received_at
              AND truerank.closes_at(p_board, s.ends_at)
                  > coalesce(r.made_at, p_board.created_at)
              AND r.kept_open IS NOT TRUE);
    END IF;
    IF cardinality(v_closed || v_over) = 0 AND p_expected_season IS NULL
       AND cardinality(p_board.seasons) > 0 THEN
        RETURN p_codes;
    END IF;
    v_runs := truerank.season_runs(p_seasons);
    SELECT array_agg(coalesce(e.code, j.code) ORDER BY e.ord) INTO v_codes
    FROM unnest(p_codes, p_at, p_uuids) WITH ORDINALITY AS e (code, at, uuid, ord)
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN count(*) = 0 THEN 'season_none'
            WHEN bool_or(s.ranking = ANY (v_final)) THEN 'season_final'
            WHEN bool_or(s.ranking = ANY (v_closed) AND NOT s.is_in) THEN 'season_sealed'
            WHEN bool_or(s.ranking = ANY (v_over) AND NOT s.is_in) THEN 'season_over'
            WHEN p_expected_season IS NOT NULL AND NOT bool_or(s.ranking = ANY (v_expected))
                THEN 'season_unexpected'
        END AS code
        FROM (
            SELECT a.ranking, EXISTS (
                       SELECT FROM truerank.replacement AS c
                       WHERE c.board_id = p_board.id AND c.event_uuid = e.uuid
                         AND c.ranking = a.ranking) AS is_in
            FROM truerank.seasons_at(v_runs, e.at) AS a
        ) AS s
    ) AS j;
    RETURN v_codes;
END
$$;
