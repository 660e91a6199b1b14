-- merges_under_way: whether events of a season may still count for an id that was merged.
--
-- Until truerank.sweep_members has completed the merge, a transaction that didn't know of it may
-- have left a standing under the old id.
CREATE OR REPLACE FUNCTION truerank.merges_under_way(
    p_board truerank.board, p_season truerank.season
) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM truerank.merging AS m
        WHERE EXISTS (SELECT FROM truerank.event AS e
                      WHERE e.board_id = (p_board).id AND e.member = m.member
                        AND e.occurred_at >= (p_season).starts_at
                        AND e.occurred_at < (p_season).ends_at))
$$;
