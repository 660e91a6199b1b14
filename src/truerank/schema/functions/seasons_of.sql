-- seasons_of: every season of a board that at least one of the given instants falls into.
--
-- Returns one row per season; the ranges of one kind of period don't overlap.
CREATE OR REPLACE FUNCTION truerank.seasons_of(p_board truerank.board, p_at timestamptz[])
RETURNS SETOF truerank.season
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_season truerank.season;
    v_sorted timestamptz[];
    v_last timestamptz;
    v_at timestamptz;
    v_index integer;
BEGIN
    SELECT array_agg(DISTINCT a), max(a) INTO v_sorted, v_last FROM unnest(p_at) AS a;
    IF v_last IS NULL THEN
        RETURN;
    END IF;
    FOREACH v_season.period IN ARRAY p_board.seasons LOOP
        v_season.ends_at := '-infinity';
        -- From season to season, not from event to event: a batch rarely spans more than one.
        FOREACH v_at IN ARRAY v_sorted LOOP
            CONTINUE WHEN v_at < v_season.ends_at OR v_at IS NULL;
            v_index := truerank.period_index(v_season.period, p_board.zone, v_at);
            v_season.ranking := truerank.ranking_id(p_board.id, v_season.period, v_index);
            v_season.label := truerank.period_label(v_season.period, v_index);
            v_season.starts_at := truerank.period_start(v_season.period, p_board.zone, v_index);
            v_season.ends_at := truerank.period_start(v_season.period, p_board.zone, v_index + 1);
            RETURN NEXT v_season;
            EXIT WHEN v_last < v_season.ends_at;
        END LOOP;
    END LOOP;
    IF p_board.has_custom_seasons THEN
        RETURN QUERY
        SELECT r.id, r.period, r.season, r.starts_at, r.ends_at
        FROM truerank.ranking AS r
        WHERE r.board_id = p_board.id AND r.period = 'custom' AND r.kind = 'live'
          AND EXISTS (SELECT FROM unnest(v_sorted) AS a WHERE a >= r.starts_at AND a < r.ends_at);
    END IF;
END
$$;
