-- carry_said: let what was said of a member hold for the one that it is merged into.
--
-- Bans with their ends, everywhere and on boards, of two the one that ends later: nobody escapes one
-- by a merge. The name and public details, where p_into has none. Tiers and keys in leagues, where it
-- has no moves there, or no key. The wish to be hidden only where p_into has no events, nor standings
-- of events that are forgotten: then it is p_from under another id, else somebody with a wish of its
-- own. Deletions stay.
-- Before p_from is merged; the caller holds both (see hold_members).
-- Returns: whether p_into was an id without events.
CREATE OR REPLACE FUNCTION truerank.carry_said(p_from text, p_into text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[] := truerank.names_of(p_into);
    v_said truerank.member_state;
    v_renamed boolean := NOT EXISTS (
        SELECT FROM truerank.board AS b
        CROSS JOIN LATERAL unnest(v_names) AS n (name)
        CROSS JOIN LATERAL (
            SELECT FROM truerank.event AS e
            WHERE e.board_id = b.id AND e.member = n.name
            ORDER BY e.occurred_at LIMIT 1) AS e
        WHERE b.deleted_at IS NULL)
        AND NOT EXISTS (SELECT FROM truerank.member_rankings(p_into, 0) AS r
                        JOIN truerank.standing AS s ON s.ranking = r AND s.member = ANY (v_names));
BEGIN
    FOR v_said IN
        SELECT s.* FROM truerank.member_state AS s
        LEFT JOIN truerank.board AS b ON b.id = s.board_id
        WHERE s.member = p_from AND (s.board_id = 0 OR b.id IS NOT NULL AND b.deleted_at IS NULL)
        ORDER BY s.board_id
    LOOP
        IF v_said.hides AND v_renamed THEN
            PERFORM truerank.change_state(v_said.board_id, p_into, 'hide', NULL);
        END IF;
        IF v_said.state = 'banned' AND coalesce(v_said.until, 'infinity') > clock_timestamp()
           AND NOT EXISTS (SELECT FROM truerank.member_state AS o
                           WHERE o.board_id = v_said.board_id AND o.member = p_into
                             AND o.state = 'banned'
                             AND coalesce(o.until, 'infinity')
                                 >= coalesce(v_said.until, 'infinity')) THEN
            PERFORM truerank.change_state(v_said.board_id, p_into, 'ban', v_said.until);
        END IF;
    END LOOP;
    UPDATE truerank.member AS m SET
        display_name = f.display_name, profile = f.profile, changed_at = clock_timestamp()
    FROM truerank.member AS f
    WHERE f.id = p_from AND (f.display_name IS NOT NULL OR f.profile IS NOT NULL)
      AND m.id = p_into AND m.display_name IS NULL AND m.profile IS NULL;
    UPDATE truerank.league_move AS v SET member = p_into
    FROM (SELECT DISTINCT l.board_id, l.period FROM truerank.league AS l) AS l
    WHERE v.board_id = l.board_id AND v.period = l.period AND v.member = p_from
      AND NOT EXISTS (SELECT FROM truerank.league_move AS o
                      WHERE o.board_id = l.board_id AND o.period = l.period AND o.member = p_into);
    UPDATE truerank.league_key AS k SET member = p_into
    FROM truerank.board AS b
    WHERE k.board_id = b.id AND k.member = p_from
      AND NOT EXISTS (SELECT FROM truerank.league_key AS o
                      WHERE o.board_id = b.id AND o.member = p_into);
    RETURN v_renamed;
END
$$;
