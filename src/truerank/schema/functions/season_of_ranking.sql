-- season_of_ranking: the season that a ranking's number stands for, with its bounds.
--
-- Of a cohort, that of the season which is divided, but with the cohort's own number.
CREATE OR REPLACE FUNCTION truerank.season_of_ranking(
    p_board truerank.board, p_ranking bigint
) RETURNS truerank.season
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_season truerank.season;
    v_index integer := (p_ranking & 4294967295) - 2147483648;
BEGIN
    IF (p_ranking >> 32) & 15 = 9 THEN
        v_season := truerank.season_of_ranking(p_board, truerank.season_divided(p_ranking));
        v_season.ranking := p_ranking;
        RETURN v_season;
    END IF;
    v_season.ranking := p_ranking;
    v_season.period := (ARRAY['all', 'day', 'week', 'month', 'year', 'custom'])
                       [((p_ranking >> 32) & 15)::integer];
    IF v_season.period = 'custom' THEN
        SELECT r.season, r.starts_at, r.ends_at
        INTO v_season.label, v_season.starts_at, v_season.ends_at
        FROM truerank.ranking AS r WHERE r.id = p_ranking;
    ELSE
        v_season.label := truerank.period_label(v_season.period, v_index);
        v_season.starts_at := truerank.period_start(v_season.period, p_board.zone, v_index);
        v_season.ends_at := truerank.period_start(v_season.period, p_board.zone, v_index + 1);
    END IF;
    RETURN v_season;
END
$$;
