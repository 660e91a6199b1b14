-- try_close: note that the close of a season is tried now, so that others have their turn after it.
--
-- It is due again after a pause that doubles with each try, 0.25 s at first and 32 s at most.
-- Not in the transaction of the settlement: there it would be in the way of other closers, and they
-- in its way. See forget_attempts.
-- Returns: the pause in seconds; null where there is no such season.
CREATE OR REPLACE FUNCTION truerank.try_close(p_board text, p_season text)
RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id bigint := (
        SELECT s.ranking FROM truerank.board AS b
        CROSS JOIN LATERAL truerank.find_season(b.id, coalesce(p_season, '')) AS s
        WHERE b.key = p_board AND b.deleted_at IS NULL);
    v_pause double precision;
BEGIN
    IF v_id IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO truerank.close_attempt AS a (ranking, tries, next_at)
    VALUES (v_id, 1, clock_timestamp() + interval '0.25 s')
    ON CONFLICT (ranking) DO UPDATE SET
        tries = a.tries + 1,
        next_at = clock_timestamp() + interval '0.25 s' * 2 ^ least(a.tries, 7)
    RETURNING 0.25 * 2 ^ least(a.tries - 1, 7) INTO v_pause;
    RETURN v_pause;
END
$$;
