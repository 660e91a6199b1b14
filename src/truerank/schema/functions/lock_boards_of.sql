-- lock_boards_of: take the advisory locks (shared) of the boards on which a member has events.
--
-- Like a score command, so that no season of theirs closes meanwhile; and the walks that forget their
-- history, which carries events over, or compute new seasons from it. p_board_id 0: of all boards.
CREATE OR REPLACE FUNCTION truerank.lock_boards_of(p_member text, p_board_id integer) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock_shared(truerank.lock_class(), k.key) FROM (
        SELECT DISTINCT b.id & 255 AS key FROM truerank.board AS b
        WHERE (p_board_id = 0 OR b.id = p_board_id) AND truerank.has_history(b, truerank.names_of(p_member))
        ORDER BY key
    ) AS k;
    SELECT count(*) FROM (
        SELECT FROM truerank.pruning AS p WHERE p_board_id IN (0, p.board_id)
        ORDER BY p.board_id FOR SHARE) AS p;
    SELECT count(*) FROM (
        SELECT FROM truerank.board AS b
        WHERE p_board_id IN (0, b.id) AND b.filling <> '{}' ORDER BY b.id FOR SHARE) AS b;
$$;
