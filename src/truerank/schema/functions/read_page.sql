-- read_page: what page.lua answers from the projection, answered from the source.
--
-- One snapshot: that of the calling statement. Places count from 0. p_row_bytes is how many
-- leading bytes of a sort key (score and tie-breaks) decide whether two are equal.
-- Rows are sort key and member in UTF-8, in one byte string, in order.
-- The slice: p_limit rows that begin with p_low or come later, and before all that begin with
-- p_high (null: no bound); p_start `at` passes over p_offset of them, `after` and `before` take
-- those nearest to the row that p_beside_key and p_beside_member name, there or not.
-- The neighbourhood: p_around_limit rows around the place p_around_place, null: that of the first
-- member.
-- p_up_to: of each member also how many are equal or better.
-- p_dense: who is better is counted in different scores and tie-breaks, not in members.
-- p_marks: keys, or first bytes of keys, before which to count: members, and then, p_dense, also
-- different scores and tie-breaks.
-- p_compared: also the snapshot and the lives of the server, for tokens. A standby gives none: its
-- snapshots don't list what is in progress on the primary.
-- ban_ended: the ban of one of these members has ended, and is to be lifted before they are shown.
-- fold_due: no worker took in the changes of this population for long; each is read each time.
-- Cost: linear in the last of the places that are looked up, and in the members who are withheld
-- everywhere or on the board; otherwise in the rows. That of the top doesn't grow.
-- Its settings: plans that are kept know no places. They would read the whole table, share it
-- among processes or compile themselves where a few rows are wanted.
CREATE OR REPLACE FUNCTION truerank.read_page(
    p_ranking bigint, p_row_bytes integer, p_offset bigint DEFAULT 0, p_limit integer DEFAULT 0,
    p_members text[] DEFAULT '{}', p_around_limit integer DEFAULT 0,
    p_compared boolean DEFAULT false, p_start text DEFAULT 'at',
    p_beside_key bytea DEFAULT NULL, p_beside_member text DEFAULT NULL,
    p_low bytea DEFAULT NULL, p_high bytea DEFAULT NULL,
    p_around_place bigint DEFAULT NULL, p_up_to boolean DEFAULT false, p_marks bytea[] DEFAULT '{}',
    p_dense boolean DEFAULT false
) RETURNS TABLE (
    total bigint, slice_first bigint, slice bytea[], slice_better bigint,
    slice_low bigint, slice_high bigint,
    member_places bigint[], member_better bigint[], member_keys bytea[], member_up_to bigint[],
    around_first bigint, around bytea[], around_better bigint, counts bigint[],
    epoch uuid, read_at timestamptz, snapshot text, lives text,
    member_states text[], ban_ended boolean, fold_due boolean
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    v_asked integer := 0;
    v_withheld text[];  -- who has a standing and takes no place, in order; null: nobody
    v_withheld_keys bytea[];
    v_equals bytea[];  -- of each member asked for, the bytes in which equals agree
    v_afters bytea[];  -- and what comes after all that begin with them
    v_counts bigint[];
    v_middle bigint;
BEGIN
    -- Not the statement's time: of a prepared statement that is when it is executed, and its
    -- snapshot is older by then. The transaction's is never later than any of its snapshots.
    SELECT x.epoch, now(), p.n, p.n, p.changes > 1000, 0, p_offset, (
               SELECT array_agg(y.member) FROM truerank.member_state AS y
               WHERE y.board_id IN (0, (p_ranking >> 36)::integer)
                 AND y.state IN ('hidden', 'banned', 'merged'))
    INTO epoch, read_at, total, slice_high, fold_due, slice_low, slice_first, v_withheld
    FROM truerank.setting AS x
    CROSS JOIN (
        SELECT coalesce((SELECT p.n FROM truerank.population AS p WHERE p.ranking = p_ranking), 0)
               + coalesce(sum(c.n), 0)::bigint AS n, count(*) AS changes
        FROM truerank.population_change AS c WHERE c.ranking = p_ranking) AS p;
    IF v_withheld IS NOT NULL THEN
        SELECT array_agg(m.member ORDER BY s.sort_key, m.member),
               array_agg(s.sort_key ORDER BY s.sort_key, m.member),
               total - count(*), total - count(*)
        INTO v_withheld, v_withheld_keys, total, slice_high
        FROM (SELECT DISTINCT w AS member FROM unnest(v_withheld) AS w) AS m
        -- OFFSET: as it is, else the whole ranking might be joined to the few.
        CROSS JOIN LATERAL (
            SELECT s.sort_key FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.member = m.member OFFSET 0) AS s;
    END IF;

    -- What is asked most, the top, passes by the rest: every expression has its price.
    IF p_start <> 'at' OR cardinality(p_marks) > 0 OR num_nonnulls(p_low, p_high) > 0 THEN
        SELECT b.* INTO slice, slice_first, slice_low, slice_high, counts
        FROM truerank.bounded_slice(
            p_ranking, p_offset, p_limit, p_start, p_beside_key, p_beside_member, p_low, p_high,
            p_marks, total, v_withheld, v_withheld_keys) AS b;
    ELSIF p_limit > 0 THEN
        -- As ranking_slice has it, which compares each row with two bounds.
        slice := ARRAY(
            SELECT s.sort_key || convert_to(s.member, 'UTF8') FROM truerank.standing AS s
            WHERE s.ranking = p_ranking
              AND (v_withheld IS NULL OR s.member NOT IN (SELECT w FROM unnest(v_withheld) AS w))
            ORDER BY s.sort_key, s.member OFFSET p_offset LIMIT p_limit);
    END IF;
    IF cardinality(p_members) > 0 THEN
        v_asked := cardinality(p_members);
        SELECT array_agg(k.state ORDER BY k.ord), array_agg(k.key ORDER BY k.ord),
               array_agg(substr(k.key, 1, p_row_bytes) ORDER BY k.ord),
               array_agg(CASE WHEN k.key IS NOT NULL THEN coalesce(
                             truerank.key_after(substr(k.key, 1, p_row_bytes)),
                             decode(repeat('ff', 64), 'hex')) END
                         ORDER BY k.ord) FILTER (WHERE p_up_to)
        INTO member_states, member_keys, v_equals, v_afters
        FROM (
            SELECT m.ord, coalesce(w.state, 'active') AS state,
                   CASE WHEN w.state IS NULL THEN s.sort_key END AS key
            FROM unnest(p_members) WITH ORDINALITY AS m (member, ord)
            LEFT JOIN LATERAL truerank.withheld_as((p_ranking >> 36)::integer, m.member)
                AS w (state) ON true
            LEFT JOIN LATERAL (
                SELECT s.sort_key FROM truerank.standing AS s
                WHERE s.ranking = p_ranking AND s.member = m.member OFFSET 0) AS s ON true
        ) AS k;
        ban_ended := 'banned' = ANY (member_states) AND truerank.bans_ended(p_members);
        -- In one walk: what is asked for beside each other costs once.
        v_counts := truerank.count_before(
            p_ranking, v_equals || member_keys || v_afters,
            array_fill(''::text, ARRAY[v_asked]) || p_members
            || array_fill(''::text, ARRAY[v_asked]),
            v_withheld, v_withheld_keys, p_ordered => v_asked = 1);
        member_better := v_counts[:v_asked];
        member_places := v_counts[v_asked + 1:2 * v_asked];
        IF p_up_to THEN
            member_up_to := v_counts[2 * v_asked + 1:];
        END IF;
    END IF;
    IF p_around_limit > 0 THEN
        v_middle := coalesce(p_around_place, member_places[1]);
    END IF;
    IF v_middle IS NOT NULL THEN
        around_first := greatest(
            0, least(v_middle - (p_around_limit - 1) / 2, total - p_around_limit));
        around := CASE WHEN p_around_place IS NOT NULL THEN truerank.ranking_slice(
                p_ranking, '', '', decode(repeat('ff', 64), 'hex'), '',
                around_first, p_around_limit, v_withheld)
            ELSE truerank.ranking_slice(
                p_ranking, '', '', member_keys[1], p_members[1],
                0, (v_middle - around_first)::integer, v_withheld, true)
            || truerank.ranking_slice(
                p_ranking, member_keys[1], p_members[1], decode(repeat('ff', 64), 'hex'), '',
                0, (p_around_limit - v_middle + around_first)::integer, v_withheld) END;
    END IF;

    IF p_dense THEN
        v_counts := truerank.count_before(
            p_ranking, ARRAY[substr(slice[1], 1, p_row_bytes), substr(around[1], 1, p_row_bytes)]
                       || v_equals || p_marks,
            array_fill(''::text, ARRAY[2 + v_asked + cardinality(p_marks)]),
            v_withheld, v_withheld_keys, p_distinct => p_row_bytes);
        slice_better := v_counts[1];
        around_better := v_counts[2];
        member_better := v_counts[3:2 + v_asked];
        counts := counts || v_counts[3 + v_asked:];
    ELSE
        IF slice_first > 0 THEN
            slice_better := truerank.better_than(
                p_ranking, slice_first, slice[1], p_row_bytes, v_withheld, v_withheld_keys);
        END IF;
        IF around_first > 0 THEN
            around_better := truerank.better_than(
                p_ranking, around_first, around[1], p_row_bytes, v_withheld, v_withheld_keys);
        END IF;
    END IF;
    IF fold_due THEN
        fold_due := current_setting('transaction_read_only') = 'off';
    END IF;
    IF p_compared AND NOT pg_is_in_recovery() THEN
        snapshot := pg_current_snapshot()::text;
        lives := truerank.lives();
    END IF;
    RETURN NEXT;
END
$$;
