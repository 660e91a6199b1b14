-- state_at: what a state of a member comes to at an instant: a ban that has ended by then is none.
--
-- Whoever was about to be banned and hid, or is being erased, is hidden still. See lift_bans.
CREATE OR REPLACE FUNCTION truerank.state_at(p_state truerank.member_state, p_at timestamptz)
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_state.state <> 'banned' OR p_state.until IS NULL OR p_state.until > p_at
                THEN p_state.state
                WHEN p_state.hides OR p_state.erasing THEN 'hidden'
                ELSE 'active' END
$$;
