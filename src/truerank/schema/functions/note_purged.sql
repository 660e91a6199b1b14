-- note_purged: note that the copies of some groups hold nothing any more of who is erased.
--
-- With the last group the erasure is complete, receivers are told, and the ids go from here as well.
CREATE OR REPLACE FUNCTION truerank.note_purged(p_erasures uuid[], p_groups smallint[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM truerank.erasure AS e WHERE e.id = ANY (p_erasures) ORDER BY e.id FOR UPDATE;
    INSERT INTO truerank.erasure_group (erasure, grp)
    SELECT u.erasure, u.grp FROM unnest(p_erasures, p_groups) AS u (erasure, grp)
    JOIN truerank.erasure AS e ON e.id = u.erasure AND e.erased_at IS NULL
    ORDER BY u.erasure, u.grp ON CONFLICT DO NOTHING;
    PERFORM truerank.queue_erasures(ARRAY(
        SELECT e FROM truerank.erasure AS e
        WHERE e.id = ANY (p_erasures) AND e.erased_at IS NULL
          AND (SELECT count(*) FROM truerank.erasure_group AS d WHERE d.erasure = e.id)
              >= (SELECT s.groups FROM truerank.setting AS s)));
    UPDATE truerank.erasure AS e SET names = NULL, erased_at = clock_timestamp()
    WHERE e.id = ANY (p_erasures) AND e.erased_at IS NULL
      AND (SELECT count(*) FROM truerank.erasure_group AS d WHERE d.erasure = e.id)
          >= (SELECT s.groups FROM truerank.setting AS s);
    DELETE FROM truerank.erasure_group AS d USING truerank.erasure AS e
    WHERE d.erasure = ANY (p_erasures) AND e.id = d.erasure AND e.erased_at IS NOT NULL;
END
$$;
