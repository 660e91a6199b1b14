-- forget_attempts: note that a season was closed, so that nothing is kept of the tries it took.
--
-- Whatever those have left whose season somebody else closed, or who were killed, goes as well.
CREATE OR REPLACE FUNCTION truerank.forget_attempts(p_board text, p_season text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM truerank.close_attempt AS a
    WHERE a.ranking = (
        SELECT s.ranking FROM truerank.board AS b
        CROSS JOIN LATERAL truerank.find_season(b.id, coalesce(p_season, '')) AS s
        WHERE b.key = p_board AND b.deleted_at IS NULL)
       OR a.next_at < clock_timestamp() - interval '1 minute' AND EXISTS (
           SELECT FROM truerank.ranking AS r WHERE r.id = a.ranking AND r.state = 'final')
$$;
