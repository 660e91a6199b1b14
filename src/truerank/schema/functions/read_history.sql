-- read_history: what read_page answers, of a board as it stood at an instant, and who stood where at
-- an earlier one.
--
-- p_at null: as it is now, from the standings of p_shown, which is p_ranking itself but where that
-- is frozen: then nothing is read that came, or was committed, later than p_frozen_at, whatever
-- instant is asked for. p_since null: nobody's earlier rank is asked for. Instants are those at
-- which events came (received_at): one whose transaction was open at that moment counts as well.
-- See events_at for whom they count. Of a cohort p_ranking and p_shown are its own: as it stood then
-- are those who are in it today, with what they had in the season, at the cost of their events alone.
-- p_numbering: of the earlier ranks. Rows, places and what else is asked for are as in read_page.
-- state, settled_at, revision: of the season, at that instant.
-- Cost: that of standings_at for each of the two instants, and a sort of all members.
-- Returns: no row where the board is gone; one with nothing but refused where it can't be said:
--          future (an instant is yet to come), history_forgotten (see exact_from: from when on it
--          can be said; null: of no instant).
CREATE OR REPLACE FUNCTION truerank.read_history(
    p_ranking bigint, p_shown bigint, p_frozen_at timestamptz, p_at timestamptz,
    p_since timestamptz, p_numbering text, p_offset bigint, p_limit integer, p_members text[],
    p_around_limit integer, p_around_place bigint DEFAULT NULL
) RETURNS TABLE (
    refused text, exact_from timestamptz,
    total bigint, slice bytea[], slice_better bigint, slice_before bigint[],
    member_places bigint[], member_better bigint[], member_keys bytea[], member_up_to bigint[],
    member_before bigint[],
    around_first bigint, around bytea[], around_better bigint, around_before bigint[],
    states text[], ban_ended boolean,
    epoch uuid, read_at timestamptz, age_ms bigint,
    state text, settled_at timestamptz, revision integer
)
-- Nothing here is looked up row by row: a plan for what tables were once would read them so.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_nestloop = off
SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    v_now CONSTANT timestamptz := clock_timestamp();
    v_at CONSTANT timestamptz := CASE WHEN p_at >= p_frozen_at THEN NULL ELSE p_at END;
    -- What was before, as it is shown now.
    v_same CONSTANT boolean := coalesce(p_since >= p_frozen_at, false);
    v_board truerank.board;
    v_season truerank.season;
    v_row_bytes integer;
    v_seen pg_snapshot;  -- all that the public may see of what is frozen
    v_cohort CONSTANT bigint := CASE WHEN (p_ranking >> 32) & 15 = 9 THEN p_ranking END;
    v_names text[];  -- ids under which events of the cohort's members are stored
BEGIN
    p_ranking := truerank.season_divided(p_ranking);
    SELECT b.* INTO v_board FROM truerank.board AS b
    WHERE b.id = p_ranking >> 36 AND b.deleted_at IS NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_season := truerank.season_of_ranking(v_board, p_ranking);
    IF p_frozen_at IS NOT NULL THEN
        SELECT f.snapshot INTO v_seen FROM truerank.freeze AS f
        WHERE f.ranking = p_ranking AND truerank.frozen_id(f.board_id, f.id) = p_shown;
    END IF;
    v_row_bytes := 8 * (1 + cardinality(v_board.tie_names));
    exact_from := truerank.history_exact_from(v_board, v_season);
    refused := CASE
        WHEN greatest(p_at, p_since) > v_now THEN 'future'
        WHEN least(v_at, CASE WHEN NOT v_same THEN p_since END) < exact_from
            THEN 'history_forgotten' END;
    -- Clients have no infinite instants.
    exact_from := CASE WHEN isfinite(exact_from) THEN exact_from END;
    IF refused IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    read_at := coalesce(v_at, now());
    age_ms := CASE WHEN v_at IS NULL THEN 0
              ELSE ceil(extract(epoch FROM v_now - v_at) * 1000) END;
    SELECT s.epoch INTO epoch FROM truerank.setting AS s;
    SELECT s.settled_at, s.revision INTO settled_at, revision FROM truerank.settlement AS s
    WHERE s.ranking = p_ranking AND s.settled_at <= coalesce(p_at, v_now)
    ORDER BY s.revision DESC LIMIT 1;
    state := CASE WHEN revision IS NOT NULL THEN 'final'
                  WHEN EXISTS (SELECT FROM truerank.ranking AS r
                               WHERE r.id = p_ranking AND r.state <> 'open'
                                 AND r.sealed_at <= coalesce(p_at, v_now)) THEN 'sealed'
                  ELSE 'open' END;
    states := truerank.states_on(v_board.id, p_members);
    ban_ended := 'banned' = ANY (states) AND truerank.bans_ended(p_members);

    IF v_cohort IS NOT NULL THEN
        v_names := ARRAY(SELECT n.name FROM truerank.cohort_member AS m
                         CROSS JOIN LATERAL unnest(truerank.names_of(m.member)) AS n (name)
                         WHERE m.cohort = v_cohort);
    END IF;

    WITH shown AS (
        SELECT a.member, a.sort_key FROM truerank.standings_at(
            v_board, v_season, v_at, v_seen, v_names) AS a
        WHERE v_at IS NOT NULL AND (v_cohort IS NULL OR a.member IN (
            SELECT m.member FROM truerank.cohort_member AS m WHERE m.cohort = v_cohort))
        UNION ALL
        SELECT v.member, v.sort_key FROM truerank.visible_standing AS v
        WHERE v.ranking = p_shown AND v_at IS NULL
    ), placed AS MATERIALIZED (
        SELECT s.member COLLATE "C" AS member, s.sort_key,
               row_number() OVER (ORDER BY s.sort_key, s.member COLLATE "C") - 1 AS place,
               CASE WHEN p_numbering = 'dense' THEN dense_rank() OVER by_score
                    ELSE rank() OVER by_score END - 1 AS better,
               count(*) OVER by_score AS up_to
        FROM shown AS s
        WINDOW by_score AS (ORDER BY substr(s.sort_key, 1, v_row_bytes))
    ), earlier AS (
        SELECT a.member, a.sort_key FROM truerank.standings_at(
            v_board, v_season, p_since, v_seen, v_names) AS a
        WHERE p_since IS NOT NULL AND NOT v_same AND (v_cohort IS NULL OR a.member IN (
            SELECT m.member FROM truerank.cohort_member AS m WHERE m.cohort = v_cohort))
        UNION ALL
        SELECT v.member, v.sort_key FROM truerank.visible_standing AS v
        WHERE v.ranking = p_shown AND v_same
    ), ranked AS MATERIALIZED (
        SELECT s.member COLLATE "C" AS member,
               CASE p_numbering
                   WHEN 'ordinal' THEN row_number() OVER (ORDER BY s.sort_key, s.member COLLATE "C")
                   WHEN 'dense' THEN dense_rank() OVER by_score ELSE rank() OVER by_score END
               AS rank
        FROM earlier AS s
        WINDOW by_score AS (ORDER BY substr(s.sort_key, 1, v_row_bytes))
    ), middle AS MATERIALIZED (
        SELECT n.total, CASE WHEN p_around_limit > 0 AND m.place IS NOT NULL THEN greatest(
                   0, least(m.place - (p_around_limit - 1) / 2, n.total - p_around_limit)) END
                   AS first
        FROM (SELECT count(*) AS total FROM placed) AS n
        CROSS JOIN (SELECT coalesce(p_around_place, (
            SELECT p.place FROM placed AS p WHERE p.member = p_members[1])) AS place) AS m
    ), rows AS MATERIALIZED (
        SELECT p.*, b.rank AS before, p.place >= p_offset AND p.place < p_offset + p_limit AS listed,
               p.place >= m.first AND p.place < m.first + p_around_limit AS near
        FROM placed AS p
        CROSS JOIN middle AS m
        LEFT JOIN ranked AS b ON b.member = p.member
        WHERE p.place >= p_offset AND p.place < p_offset + p_limit
           OR p.place >= m.first AND p.place < m.first + p_around_limit
    ), asked AS (
        SELECT m.ord, p.*, b.rank AS before
        FROM unnest(p_members) WITH ORDINALITY AS m (id, ord)
        LEFT JOIN placed AS p ON p.member = m.id
        LEFT JOIN ranked AS b ON b.member = m.id COLLATE "C"
    )
    SELECT m.total, m.first, l.*, n.*, a.*
    INTO total, around_first, slice, slice_better, slice_before, around, around_better,
         around_before, member_places, member_better, member_keys, member_up_to, member_before
    FROM middle AS m
    CROSS JOIN (
        SELECT array_agg(r.sort_key || convert_to(r.member, 'UTF8') ORDER BY r.place),
               min(r.better), array_agg(r.before ORDER BY r.place)
        FROM rows AS r WHERE r.listed) AS l
    CROSS JOIN (
        SELECT array_agg(r.sort_key || convert_to(r.member, 'UTF8') ORDER BY r.place),
               min(r.better), array_agg(r.before ORDER BY r.place)
        FROM rows AS r WHERE r.near) AS n
    CROSS JOIN (
        SELECT array_agg(x.place ORDER BY x.ord), array_agg(x.better ORDER BY x.ord),
               array_agg(x.sort_key ORDER BY x.ord), array_agg(x.up_to ORDER BY x.ord),
               array_agg(x.before ORDER BY x.ord)
        FROM asked AS x) AS a;
    RETURN NEXT;
END
$$;
