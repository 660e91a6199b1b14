-- seal_season: let a season take no more events; the first of three steps to a settlement.
--
-- In a transaction of its own. Then pass_barrier until it says passed, then settle_season; each may
-- be repeated, by any number of callers at once. Before its end and the board's late_grace have
-- passed a season is sealed only where p_forced; that also ends a hold. One that has not begun is
-- sealed by nobody: it would never take an event. Corrections are taken until it is final.
-- Locks:   one that only seals take, so that they come one after the other; the season's row.
--          Writers above READ COMMITTED whose snapshot is older fail with 40001 from then on: see
--          need_latest_seal. No writer is waited for, and none waits.
-- Returns: one row: sealed, same (sealed before) or final, and until when the settlement is held
--          back; too_early, with when it may be closed (null: by force only); not_begun, with when it
--          begins; earlier_open, where nothing but the season before it keeps it from being settled at
--          once (see season_before), and nothing is done; board_unknown, season_unknown.
-- Raises:  55P03 where another seal, or a settlement, is in the way: repeat it.
CREATE OR REPLACE FUNCTION truerank.seal_season(
    p_board text, p_season text, p_forced boolean, p_actor text, p_reason text
) RETURNS TABLE (outcome text, at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET timezone = 'UTC' AS $$
DECLARE
    v_board truerank.board;
    v_ranking truerank.ranking;
    v_id bigint;
    v_starts_at timestamptz;
    v_ends_at timestamptz;
BEGIN
    PERFORM truerank.need_read_committed();
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.key = p_board AND b.deleted_at IS NULL;
    IF v_board.id IS NULL THEN
        RETURN QUERY SELECT 'board_unknown', NULL::timestamptz;
        RETURN;
    END IF;
    SELECT s.ranking, s.starts_at, s.ends_at INTO v_id, v_starts_at, v_ends_at
    FROM truerank.find_season(v_board.id, coalesce(p_season, '')) AS s;
    IF v_id IS NULL THEN
        RETURN QUERY SELECT 'season_unknown', NULL::timestamptz;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(truerank.lock_class(), 256);
    SELECT r.* INTO v_ranking FROM truerank.ranking AS r WHERE r.id = v_id FOR NO KEY UPDATE;
    IF v_ranking.state <> 'open' THEN
        IF p_forced AND v_ranking.state = 'sealed' AND v_ranking.hold_until > clock_timestamp() THEN
            IF truerank.season_before(v_id) IS NOT NULL THEN
                RETURN QUERY SELECT 'earlier_open', NULL::timestamptz;
                RETURN;
            END IF;
            UPDATE truerank.ranking SET hold_until = clock_timestamp() WHERE id = v_id
            RETURNING hold_until INTO v_ranking.hold_until;
            INSERT INTO truerank.audit (board_id, actor, action, subject, reason)
            VALUES (v_board.id, p_actor, 'end_hold', p_season, p_reason);
        END IF;
        RETURN QUERY SELECT CASE v_ranking.state WHEN 'sealed' THEN 'same' ELSE 'final' END,
                            v_ranking.hold_until;
        RETURN;
    ELSIF NOT p_forced AND clock_timestamp() < truerank.closes_at(v_board, v_ends_at) THEN
        RETURN QUERY SELECT 'too_early', nullif(truerank.closes_at(v_board, v_ends_at), 'infinity');
        RETURN;
    ELSIF v_starts_at > clock_timestamp() THEN
        RETURN QUERY SELECT 'not_begun', v_starts_at;
        RETURN;
    ELSIF (p_forced OR v_board.hold = '0') AND truerank.season_before(v_id) IS NOT NULL THEN
        RETURN QUERY SELECT 'earlier_open', NULL::timestamptz;
        RETURN;
    END IF;
    IF v_ranking.id IS NULL THEN
        PERFORM truerank.note_rankings(ARRAY[v_id]);
    END IF;
    PERFORM setval('truerank.last_seal', pg_current_xact_id()::text::bigint);
    UPDATE truerank.ranking AS r SET
        state = 'sealed', sealed_at = clock_timestamp(), barrier_xid = NULL, barrier_at = NULL,
        kept_open = false,
        hold_until = clock_timestamp() + CASE WHEN p_forced THEN interval '0'
                                              ELSE v_board.hold END
    WHERE r.id = v_id AND r.state = 'open'
    RETURNING r.hold_until INTO v_ranking.hold_until;
    IF FOUND THEN
        INSERT INTO truerank.audit (board_id, actor, action, subject, reason, detail)
        VALUES (v_board.id, p_actor, 'seal_season', p_season, p_reason,
                jsonb_build_object('forced', p_forced));
    END IF;
    RETURN QUERY SELECT CASE WHEN v_ranking.hold_until IS NULL THEN 'same' ELSE 'sealed' END,
                        v_ranking.hold_until;
END
$$;
