-- seasons_of_events: the rankings that events of a board count in; unknown ids are passed over.
CREATE OR REPLACE FUNCTION truerank.seasons_of_events(p_board truerank.board, p_event_ids text[])
RETURNS bigint[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT s.ranking FROM truerank.seasons_of(p_board, ARRAY(
            SELECT e.occurred_at
            FROM unnest(p_event_ids) AS u (id)
            JOIN truerank.event AS e
              ON e.board_id = (p_board).id AND e.event_uuid = truerank.event_uuid(u.id)
             AND e.kind = 's')) AS s)
$$;
