-- find_season: the season of a board that a label names, or the one that runs now, or ran at p_at.
--
-- p_label null: all where the board has it, else the current season of its first period, else
-- the custom season that runs then. A built-in season exists whether or not anything happened in
-- it, as long as its bounds lie in the years 1 to 9999. An unbounded end is null. Seasons of a
-- period that is computed from the history just now are yet to be.
-- closes_at: when it may be closed; hold_until: when it will be settled, where it is sealed.
-- Returns: one row, or none where the board keeps no such season.
CREATE OR REPLACE FUNCTION truerank.find_season(
    p_board_id integer, p_label text, p_at timestamptz DEFAULT NULL
)
RETURNS TABLE (ranking bigint, period text, label text, starts_at timestamptz,
               ends_at timestamptz, state text, closes_at timestamptz,
               hold_until timestamptz, settled_at timestamptz, revision integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_board truerank.board;
    v_index integer;
    v_at CONSTANT timestamptz := coalesce(p_at, clock_timestamp());
BEGIN
    SELECT b.* INTO v_board FROM truerank.board AS b WHERE b.id = p_board_id;
    IF p_label IS NULL AND cardinality(v_board.seasons) > 0 THEN
        period := CASE WHEN 'all' = ANY (v_board.seasons) THEN 'all' ELSE v_board.seasons[1] END;
        v_index := truerank.period_index(period, v_board.zone, v_at);
    ELSIF p_label IS NOT NULL THEN
        period := CASE
            WHEN p_label = 'all' THEN 'all'
            WHEN p_label ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' THEN 'day'
            WHEN p_label ~ '^[0-9]{4}-W[0-9]{2}$' THEN 'week'
            WHEN p_label ~ '^[0-9]{4}-[0-9]{2}$' THEN 'month'
            WHEN p_label ~ '^[0-9]{4}$' THEN 'year' END;
        v_index := truerank.label_index(period, p_label);
        IF NOT period = ANY (v_board.seasons) OR period = ANY (v_board.filling)
           OR truerank.period_label(period, v_index) IS DISTINCT FROM p_label THEN
            period := NULL;
        END IF;
    END IF;
    IF period IS NOT NULL THEN
        starts_at := nullif(truerank.period_start(period, v_board.zone, v_index), '-infinity');
        ends_at := nullif(truerank.period_start(period, v_board.zone, v_index + 1), 'infinity');
        -- Clients have no instants outside the years 1 to 9999, whatever their zone.
        IF starts_at < '0001-01-02T00:00Z' OR ends_at > '9999-12-30T00:00Z' THEN
            period := NULL;
        END IF;
    END IF;
    IF period IS NOT NULL THEN
        ranking := truerank.ranking_id(v_board.id, period, v_index);
        label := truerank.period_label(period, v_index);
        SELECT r.state, r.hold_until, r.settled_at, r.revision
        INTO state, hold_until, settled_at, revision
        FROM truerank.ranking AS r WHERE r.id = find_season.ranking;
        state := coalesce(state, 'open');
        closes_at := nullif(truerank.closes_at(v_board, ends_at), 'infinity');
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT r.id, r.period, r.season, nullif(r.starts_at, '-infinity'),
           nullif(r.ends_at, 'infinity'), r.state,
           nullif(truerank.closes_at(v_board, r.ends_at), 'infinity'), r.hold_until, r.settled_at,
           r.revision
    FROM truerank.ranking AS r
    WHERE r.board_id = p_board_id AND r.period = 'custom' AND r.kind = 'live' AND r.cohort = ''
      AND (r.season = p_label
           OR p_label IS NULL AND v_at >= r.starts_at
              AND v_at < r.ends_at)
    ORDER BY r.starts_at DESC LIMIT 1;
END
$$;
