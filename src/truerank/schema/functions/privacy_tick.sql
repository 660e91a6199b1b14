-- privacy_tick: the tick below which a copy of a group may show somebody who is out of sight.
--
-- Returns: 0: none. 9223372036854775807: no tick shows the newest such change yet.
CREATE OR REPLACE FUNCTION truerank.privacy_tick(p_group smallint) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN EXISTS (SELECT FROM truerank.privacy_change AS c WHERE c.grp IN (-1, p_group))
        THEN 9223372036854775807
        ELSE coalesce((SELECT max(p.tick) FROM truerank.privacy AS p
                       WHERE p.grp IN (-1, p_group)), 0) END
$$;
