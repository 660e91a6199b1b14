-- create_board: make a board, or find that it exists as described.
--
-- The group is chosen once, by hash of the key. Seasons are any of all, day, week, month, year.
-- Returns: created, existing (the same settings), or different (nothing was changed).
-- Raises:  invalid_parameter_value for an unknown zone, a season named twice, tie-breaks of one
--          name or whose range is empty, a range of totals on a board that doesn't sum;
--          check_violation for other bad settings.
CREATE OR REPLACE FUNCTION truerank.create_board(
    p_key text, p_operator text, p_descending boolean, p_seasons text[], p_zone text,
    p_decimals integer DEFAULT 0,
    p_tie_names text[] DEFAULT '{}', p_tie_descending boolean[] DEFAULT '{}',
    p_tie_min bigint[] DEFAULT '{}', p_tie_max bigint[] DEFAULT '{}',
    p_value_min bigint DEFAULT -9223372036854775808,
    p_value_max bigint DEFAULT 9223372036854775807,
    p_total_min bigint DEFAULT -9223372036854775808,
    p_total_max bigint DEFAULT 9223372036854775807,
    p_dense boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_hash bytea := sha256(convert_to(p_key, 'UTF8'));
    v_made boolean;
BEGIN
    -- To list the zones the server reads a file of each; those that a board has were found there.
    IF p_zone IS DISTINCT FROM 'UTC'
       AND NOT EXISTS (SELECT FROM truerank.board AS b WHERE b.zone = p_zone)
       AND NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = p_zone) THEN
        RAISE invalid_parameter_value USING MESSAGE = format('no time zone is called %L', p_zone);
    ELSIF (SELECT count(*) <> count(DISTINCT s) FROM unnest(p_seasons) AS s) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a season is named twice';
    ELSIF (SELECT count(t) <> count(DISTINCT t) OR bool_or(t IS NULL) FROM unnest(p_tie_names) AS t)
       OR EXISTS (SELECT FROM unnest(p_tie_names) AS t WHERE char_length(t) NOT BETWEEN 1 AND 100) THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'tie-breaks have different names of 1 to 100 characters';
    ELSIF EXISTS (SELECT FROM unnest(p_tie_min, p_tie_max, p_tie_descending) AS t (low, high, falls)
                  WHERE (t.low <= t.high AND t.falls IS NOT NULL) IS NOT TRUE) THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'each tie-break has a direction, and a range whose ends are in order';
    ELSIF p_operator <> 'sum' AND (p_total_min, p_total_max)
            <> (-9223372036854775808, 9223372036854775807) THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'only boards that sum have totals to limit: limit the values';
    END IF;
    -- Looked for first: each attempt to insert would draw a number, and there are only so many.
    INSERT INTO truerank.board
        (key, grp, operator, descending, seasons, zone, decimals, tie_names, tie_descending,
         tie_min, tie_max, value_min, value_max, total_min, total_max, dense)
    SELECT p_key, (get_byte(v_hash, 0) * 256 + get_byte(v_hash, 1)) % s.groups, p_operator,
           p_descending, p_seasons, p_zone, p_decimals, p_tie_names, p_tie_descending,
           p_tie_min, p_tie_max, p_value_min, p_value_max, p_total_min, p_total_max, p_dense
    FROM truerank.setting AS s
    WHERE NOT EXISTS (SELECT FROM truerank.board AS b
                      WHERE b.key = p_key AND b.deleted_at IS NULL)
    ON CONFLICT (key) WHERE deleted_at IS NULL DO NOTHING;
    v_made := FOUND;
    IF v_made THEN
        RETURN 'created';
    END IF;
    RETURN CASE WHEN EXISTS (
        SELECT FROM truerank.board AS b
        WHERE b.key = p_key AND b.deleted_at IS NULL
          AND (b.operator, b.descending, b.seasons, b.zone, b.decimals, b.tie_names,
               b.tie_descending, b.tie_min, b.tie_max, b.value_min, b.value_max, b.total_min,
               b.total_max, b.dense)
            = (p_operator, p_descending, p_seasons, p_zone, p_decimals, p_tie_names,
               p_tie_descending, p_tie_min, p_tie_max, p_value_min, p_value_max, p_total_min,
               p_total_max, p_dense))
        THEN 'existing' ELSE 'different' END;
END
$$;
