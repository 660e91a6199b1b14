-- hold_members: wait for all who say something of these members, and let them wait until this ends.
--
-- For merges and erasures: see hold_owner.
-- Locks:   all states of the members, by member and board; then their rows in truerank.member.
CREATE OR REPLACE FUNCTION truerank.hold_members(p_members text[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO truerank.member_state (board_id, member)
    SELECT 0, n FROM unnest(p_members) AS n ORDER BY n COLLATE "C" ON CONFLICT DO NOTHING;
    SELECT count(*) FROM (
        SELECT FROM truerank.member_state AS s WHERE s.member = ANY (p_members)
        ORDER BY s.member, s.board_id FOR UPDATE) AS s;
    INSERT INTO truerank.member (id) SELECT n FROM unnest(p_members) AS n ORDER BY n COLLATE "C"
    ON CONFLICT DO NOTHING;
    SELECT count(*) FROM (
        SELECT FROM truerank.member AS p WHERE p.id = ANY (p_members)
        ORDER BY p.id FOR UPDATE) AS p;
$$;
