-- boards: the boards of this installation with their settings, or the one of a key.
--
-- privacy_tick: see the function of this name.
CREATE OR REPLACE FUNCTION truerank.boards(p_key text DEFAULT NULL)
RETURNS TABLE (
    id integer, key text, grp smallint, operator text, descending boolean, seasons text[],
    has_custom_seasons boolean, zone text, decimals smallint, tie_names text[],
    tie_descending boolean[], tie_min bigint[], tie_max bigint[], value_min bigint,
    value_max bigint, total_min bigint, total_max bigint, dense boolean, privacy_tick bigint,
    epoch uuid
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.id, b.key, b.grp, b.operator, b.descending, b.seasons, b.has_custom_seasons, b.zone,
           b.decimals, b.tie_names, b.tie_descending, b.tie_min, b.tie_max, b.value_min,
           b.value_max, b.total_min, b.total_max, b.dense, truerank.privacy_tick(b.grp),
           (SELECT s.epoch FROM truerank.setting AS s)
    FROM truerank.board AS b
    WHERE (p_key IS NULL OR b.key = p_key) AND b.deleted_at IS NULL
    ORDER BY b.key
$$;
