-- boards_to_fill: boards to which periods were added whose seasons aren't all computed yet.
CREATE OR REPLACE FUNCTION truerank.boards_to_fill() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.key FROM truerank.board AS b
    WHERE b.filling <> '{}' AND b.deleted_at IS NULL ORDER BY b.key
$$;
