-- lives: the life of this server, and the earlier ones whose transactions can be told by number.
--
-- Separated by spaces, the present one first, at most sixteen others, those of this epoch in which
-- a cursor was verified. Of one on another timeline only the transactions before the number that
-- is behind its `<` are known to be in the history that this server went on from: later ones may
-- have been lost with the server, and their numbers used again.
CREATE OR REPLACE FUNCTION truerank.lives() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(' ', n.id, (
        SELECT string_agg(e.text, ' ' ORDER BY e.noted_at DESC)
        FROM (
            SELECT i.noted_at, CASE WHEN split_part(i.id, '-', 2) = split_part(n.id, '-', 2)
                                    THEN i.id
                                    ELSE i.id || '<' || coalesce(i.known_to::text, '0') END AS text
            FROM truerank.incarnation AS i
            WHERE i.epoch = (SELECT s.epoch FROM truerank.setting AS s) AND i.id <> n.id
            ORDER BY i.noted_at DESC LIMIT 16
        ) AS e))
    FROM (SELECT truerank.incarnation() AS id) AS n
$$;
