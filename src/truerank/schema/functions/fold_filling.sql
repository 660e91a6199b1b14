-- fold_filling: bring standings of seasons that are just computed from the history up to events
-- just stored.
--
-- From all events of each member, for the standing may not be there yet, or be new. See fill_slice.
-- Locks:   standings in order of ranking and member.
-- Returns: what changed, with versions.
-- Raises:  numeric_value_out_of_range, as recompute_standings.
CREATE OR REPLACE FUNCTION truerank.fold_filling(
    p_board truerank.board, p_seasons truerank.season[], p_members text[], p_at timestamptz[]
) RETURNS truerank.changed[]
LANGUAGE plpgsql AS $$
DECLARE
    v_seasons truerank.season[] := ARRAY(
        SELECT s FROM unnest(p_seasons) AS s WHERE s.period = ANY (p_board.filling));
    v_runs truerank.season_run[] := truerank.season_runs(v_seasons);
    v_rankings bigint[];
    v_members text[];
    v_changed truerank.changed[];
BEGIN
    SELECT array_agg(d.ranking ORDER BY d.ranking, d.member),
           array_agg(d.member ORDER BY d.ranking, d.member)
    INTO v_rankings, v_members
    FROM (SELECT DISTINCT r.ranking, e.member COLLATE "C" AS member
          FROM unnest(p_members, p_at) AS e (member, at)
          CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r) AS d;
    IF v_rankings IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM truerank.fold_missing(p_board, v_seasons, v_rankings, v_members);
    SELECT array_agg(c) INTO v_changed FROM truerank.recompute_standings(
        p_board, v_seasons, v_rankings, v_members) AS c;
    RETURN coalesce(v_changed, '{}');
END
$$;
