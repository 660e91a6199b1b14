-- log_by_board: log_changes for standings of several boards.
CREATE OR REPLACE FUNCTION truerank.log_by_board(p_changed truerank.changed[]) RETURNS void
LANGUAGE sql AS $$
    SELECT truerank.log_changes(g.grp, pg_current_xact_id(), g.changed) FROM (
        SELECT min(b.grp) AS grp, array_agg(c::truerank.changed) AS changed
        FROM unnest(p_changed) AS c JOIN truerank.board AS b ON b.id = c.ranking >> 36
        GROUP BY b.id
    ) AS g
$$;
