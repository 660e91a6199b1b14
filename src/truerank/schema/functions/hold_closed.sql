-- hold_closed: let no closed season be settled or revised until this transaction ends, nor afterwards
-- from a snapshot that doesn't have what it changed.
--
-- For who corrects its events, or takes a member's past away. A row that is only locked would turn
-- away who settles meanwhile, but not one whose snapshot was taken before this transaction
-- committed, and that locks the season after it; so it is written, though nothing in it changes.
-- Locks:   the rows of those seasons, in order of their numbers.
CREATE OR REPLACE FUNCTION truerank.hold_closed(p_rankings bigint[]) RETURNS void
LANGUAGE sql AS $$
    WITH closed AS (
        SELECT r.id FROM truerank.ranking AS r
        WHERE r.id = ANY (p_rankings) AND r.state <> 'open'
        ORDER BY r.id FOR NO KEY UPDATE
    )
    UPDATE truerank.ranking AS r SET state = r.state FROM closed AS c WHERE r.id = c.id
$$;
