-- log_states: append one outbox row per changed state and group: op s, with the state's version.
--
-- The ranking of such a row is the first number of the board, which no ranking has; 0 for all
-- boards. A state is a fact of its own: it names no standing, so it commutes with every score.
-- Where one takes a member out of sight, copies that don't know of it are not to be read.
CREATE OR REPLACE FUNCTION truerank.log_states(p_states truerank.member_state[]) RETURNS void
-- Tables of one row are in no statistics: with millions of rows expected, the plan would be compiled
-- each time, for 0.3 s.
LANGUAGE sql SET jit = off AS $$
    INSERT INTO truerank.privacy_change (grp)
    SELECT DISTINCT coalesce(b.grp, -1::smallint)
    FROM unnest(p_states) AS m LEFT JOIN truerank.board AS b ON b.id = m.board_id
    WHERE truerank.state_letter(m.state) <> 'a' AND (m.board_id = 0 OR b.id IS NOT NULL);
    INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
    SELECT r.segment, g.grp, 's', m.board_id::bigint << 36, m.version, pg_current_xact_id(),
           m.member, convert_to(truerank.state_letter(m.state), 'UTF8')
    FROM unnest(p_states) AS m
    CROSS JOIN truerank.ring AS r
    CROSS JOIN LATERAL (
        SELECT n::smallint AS grp FROM truerank.setting AS s, generate_series(0, s.groups - 1) AS n
        WHERE m.board_id = 0
        UNION ALL
        SELECT b.grp FROM truerank.board AS b WHERE b.id = m.board_id
    ) AS g
$$;
