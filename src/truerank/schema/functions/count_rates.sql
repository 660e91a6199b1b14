-- count_rates: count accepted events per member in the current minute of the server's clock.
--
-- Locks:   rows of truerank.rate in order of member.
-- Raises:  TR001 where a member has more than the board's rate_max.
CREATE OR REPLACE FUNCTION truerank.count_rates(
    p_board truerank.board, p_received_at timestamptz, p_members text[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_most integer;
BEGIN
    WITH counted AS (
        INSERT INTO truerank.rate AS r (board_id, member, minute, events)
        SELECT p_board.id, m, date_trunc('minute', p_received_at), count(*)
        FROM unnest(p_members) AS m GROUP BY m ORDER BY m COLLATE "C"
        ON CONFLICT (board_id, member, minute) DO UPDATE SET events = r.events + excluded.events
        RETURNING events
    )
    SELECT max(c.events) INTO v_most FROM counted AS c;
    IF v_most > p_board.rate_max THEN
        RAISE SQLSTATE 'TR001' USING MESSAGE = 'too many events of one member in a minute';
    END IF;
END
$$;
