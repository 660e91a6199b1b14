-- Who is being erased is out of sight by a fact of its own, so that it hides nobody for ever, and a
-- wish or a ban of the new life, said meanwhile, neither ends it nor is lost with it.

ALTER TABLE truerank.member_state
    -- Only of board 0. Until the sweep of an erasure nothing shows the member.
    ADD COLUMN erasing boolean NOT NULL DEFAULT false CHECK (NOT erasing OR state <> 'active');
UPDATE truerank.member_state AS s SET erasing = true, hides = false
WHERE s.board_id = 0 AND s.state IN ('hidden', 'banned') AND s.member IN (
    SELECT unnest(e.names) FROM truerank.erasure AS e WHERE e.swept_xid IS NULL);

-- All that is said of one member, on whatever board.
CREATE INDEX member_state_of ON truerank.member_state (member);
