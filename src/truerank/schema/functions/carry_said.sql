-- carry_said: let what was said of a member hold for the id that it is renamed to.
--
-- Nothing where p_into has events, or standings of events that are forgotten: it is somebody of its
-- own. Else, before p_from is merged into it: bans with their ends, and the wish to be hidden,
-- everywhere and on boards, a ban of p_into going first; the name and public details, where it has
-- none; what says its tier and its key in leagues. Deletions, and the hiding of an erasure, stay.
-- Locks:   the states of p_from by board, so that who changes one of them at this moment is waited
--          for; then the states of p_into, a row of truerank.member, moves and keys of leagues.
-- Returns: whether p_into was an id without events.
CREATE OR REPLACE FUNCTION truerank.carry_said(p_from text, p_into text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[] := truerank.names_of(p_into);
    v_said truerank.member_state;
    v_erased boolean;
BEGIN
    IF EXISTS (SELECT FROM truerank.board AS b
               CROSS JOIN LATERAL unnest(v_names) AS n (name)
               CROSS JOIN LATERAL (
                   SELECT FROM truerank.event AS e
                   WHERE e.board_id = b.id AND e.member = n.name
                   ORDER BY e.occurred_at LIMIT 1) AS e
               WHERE b.deleted_at IS NULL)
       OR EXISTS (SELECT FROM truerank.member_rankings(p_into, 0) AS r
                  JOIN truerank.standing AS s ON s.ranking = r AND s.member = ANY (v_names)) THEN
        RETURN false;
    END IF;
    v_erased := EXISTS (SELECT FROM truerank.erasure AS e
                        WHERE e.swept_xid IS NULL AND p_from = ANY (e.names));
    -- A row must be there to be locked.
    INSERT INTO truerank.member_state (board_id, member) VALUES (0, p_from) ON CONFLICT DO NOTHING;
    PERFORM FROM truerank.member_state AS s WHERE s.member = p_from
    ORDER BY s.board_id FOR UPDATE;
    FOR v_said IN
        SELECT s.* FROM truerank.member_state AS s
        LEFT JOIN truerank.board AS b ON b.id = s.board_id
        WHERE s.member = p_from AND (s.board_id = 0 OR b.id IS NOT NULL AND b.deleted_at IS NULL)
        ORDER BY s.board_id
    LOOP
        IF v_said.hides AND NOT (v_said.board_id = 0 AND v_erased) THEN
            PERFORM truerank.change_state(v_said.board_id, p_into, 'hide', NULL);
        END IF;
        IF v_said.state = 'banned' AND coalesce(v_said.until > clock_timestamp(), true)
           AND NOT EXISTS (SELECT FROM truerank.member_state AS o
                           WHERE o.board_id = v_said.board_id AND o.member = p_into
                             AND o.state = 'banned'
                             AND coalesce(o.until > clock_timestamp(), true)) THEN
            PERFORM truerank.change_state(v_said.board_id, p_into, 'ban', v_said.until);
        END IF;
    END LOOP;
    INSERT INTO truerank.member AS m (id, display_name, profile)
    SELECT p_into, f.display_name, f.profile FROM truerank.member AS f
    WHERE f.id = p_from AND (f.display_name IS NOT NULL OR f.profile IS NOT NULL)
    ON CONFLICT (id) DO UPDATE SET
        display_name = excluded.display_name, profile = excluded.profile,
        changed_at = clock_timestamp()
    WHERE m.display_name IS NULL AND m.profile IS NULL;
    UPDATE truerank.league_move AS v SET member = p_into
    FROM (SELECT DISTINCT l.board_id, l.period FROM truerank.league AS l) AS l
    WHERE v.board_id = l.board_id AND v.period = l.period AND v.member = p_from
      AND NOT EXISTS (SELECT FROM truerank.league_move AS o
                      WHERE o.board_id = l.board_id AND o.period = l.period AND o.member = p_into);
    UPDATE truerank.league_key AS k SET member = p_into
    FROM (SELECT DISTINCT l.board_id FROM truerank.league AS l) AS l
    WHERE k.board_id = l.board_id AND k.member = p_from
      AND NOT EXISTS (SELECT FROM truerank.league_key AS o
                      WHERE o.board_id = l.board_id AND o.member = p_into);
    RETURN true;
END
$$;
