-- history_exact_from: the first instant of which the events that are kept tell what a season was.
--
-- Forgotten events are kept as what they came to in the end. So it is before the last of them came,
-- was corrected or ended, and before a reset of a member who had such, that nothing is known.
-- Returns: -infinity where no event of the season is forgotten, infinity where all are.
CREATE OR REPLACE FUNCTION truerank.history_exact_from(
    p_board truerank.board, p_season truerank.season
) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_season.starts_at >= p_board.history_from THEN '-infinity'
                WHEN p_season.ends_at <= p_board.history_from THEN 'infinity'
                ELSE greatest(
                    coalesce((SELECT p.exact_from FROM truerank.pruning AS p
                              WHERE p.board_id = p_board.id), 'infinity'),
                    (SELECT max(f.at) FROM truerank.forgotten_reset AS f
                     WHERE f.ranking = p_season.ranking)) END
$$;
