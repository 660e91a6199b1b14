-- fold_events: a member's standing in one season, computed from its live events alone.
--
-- This is the definition of every operator; the upserts are shortcuts to the same bytes.
--   sum     all values (and tie-breaks); reached at the last event whose row isn't zero, at the
--           first event while there is none
--   best    the best whole row; reached at the first event that attains it
--   latest  the last event; reached at the first of the unbroken run of equal rows ending there
-- Events that were forgotten count by what they came to, see truerank.opening. p_corrected_to and
-- p_ended_after: as in live_events.
-- Returns: one row, or none where no event is left. event_at and event_position are those of the
--          event the standing rests on.
CREATE OR REPLACE FUNCTION truerank.fold_events(
    p_board truerank.board, p_ranking bigint, p_names text[], p_starts_at timestamptz,
    p_ends_at timestamptz, p_corrected_to bigint DEFAULT 9223372036854775807,
    p_ended_after timestamptz DEFAULT 'infinity'
) RETURNS TABLE (score bigint, ties bigint[], event_at timestamptz, event_position bigint,
                 moved boolean, reached_at timestamptz, reached_position bigint, sort_key bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
BEGIN
    IF p_board.operator = 'sum' THEN
        SELECT sum(e.value)::bigint,
               CASE WHEN v_tie_n > 0 THEN truerank.sum_ties(
                   v_tie_n, sum(e.ties[1]), sum(e.ties[2]), sum(e.ties[3]), sum(e.ties[4])) END,
               coalesce(bool_or(e.moves), false)
        INTO score, ties, moved
        FROM truerank.live_events(p_board.id, p_ranking, p_names, p_starts_at, p_ends_at,
                                  p_corrected_to, p_ended_after) AS e;
        SELECT e.at, e.position INTO event_at, event_position
        FROM truerank.live_events(p_board.id, p_ranking, p_names, p_starts_at, p_ends_at,
                                  p_corrected_to, p_ended_after) AS e
        WHERE NOT moved OR e.moves
        ORDER BY CASE WHEN moved THEN e.at END DESC, CASE WHEN moved THEN e.position END DESC,
                 e.at, e.position
        LIMIT 1;
        reached_at := event_at;
        reached_position := event_position;
    ELSIF p_board.operator = 'best' THEN
        moved := true;
        SELECT e.value, e.ties, e.at, e.position INTO score, ties, event_at, event_position
        FROM truerank.live_events(p_board.id, p_ranking, p_names, p_starts_at, p_ends_at,
                                  p_corrected_to, p_ended_after) AS e
        ORDER BY truerank.sort_key(e.value, p_board.descending,
                     truerank.tie_bytes(e.ties, p_board.tie_descending), e.at, e.position)
        LIMIT 1;
        reached_at := event_at;
        reached_position := event_position;
    ELSE
        moved := true;
        SELECT e.value, e.ties, e.at, e.position INTO score, ties, event_at, event_position
        FROM truerank.live_events(p_board.id, p_ranking, p_names, p_starts_at, p_ends_at,
                                  p_corrected_to, p_ended_after) AS e
        ORDER BY e.at DESC, e.position DESC
        LIMIT 1;
        SELECT run.reached_at, run.reached_position
        INTO reached_at, reached_position
        FROM (
            SELECT e.reached_at, e.reached_position,
                   bool_and((e.value, e.ties) IS NOT DISTINCT FROM (score, fold_events.ties))
                       OVER (ORDER BY e.at DESC, e.position DESC) AS unbroken
            FROM truerank.live_events(p_board.id, p_ranking, p_names, p_starts_at, p_ends_at,
                                  p_corrected_to, p_ended_after) AS e
        ) AS run
        WHERE run.unbroken
        ORDER BY run.reached_at, run.reached_position
        LIMIT 1;
    END IF;
    IF event_position IS NULL THEN
        RETURN;
    END IF;
    sort_key := truerank.sort_key(score, p_board.descending,
        truerank.tie_bytes(ties, p_board.tie_descending), reached_at, reached_position);
    RETURN NEXT;
END
$$;
