-- freezes_to_do: what is to be done about freezes now, in their order.
--
-- todo: take (it is due), log (it was taken, and the projection doesn't have all of it), drop (it
-- was revealed a minute ago, and there is a copy still).
CREATE OR REPLACE FUNCTION truerank.freezes_to_do()
RETURNS TABLE (id bigint, todo text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.id, w.todo FROM (
        SELECT f.id, CASE
            WHEN f.revealed_at < clock_timestamp() - interval '1 minute' THEN 'drop'
            WHEN f.revealed_at IS NOT NULL OR f.logged THEN NULL
            WHEN f.frozen_at IS NOT NULL THEN 'log'
            WHEN f.due_at <= clock_timestamp() THEN 'take' END AS todo
        FROM truerank.freeze AS f
        JOIN truerank.board AS b ON b.id = f.board_id AND b.deleted_at IS NULL
        WHERE f.dropped_at IS NULL
    ) AS w
    WHERE w.todo IS NOT NULL ORDER BY w.id LIMIT 100
$$;
