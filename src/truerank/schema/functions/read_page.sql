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
-- p_marks: keys, or first bytes of keys, before which to count.
-- p_compared: also the snapshot and the lives of the server, for tokens. A standby gives none: its
-- snapshots don't list what is in progress on the primary.
CREATE OR REPLACE FUNCTION truerank.read_page(
    p_ranking bigint, p_row_bytes integer, p_offset bigint, p_limit integer, p_members text[],
    p_around_limit integer, p_compared boolean DEFAULT false, p_start text DEFAULT 'at',
    p_beside_key bytea DEFAULT NULL, p_beside_member text DEFAULT NULL,
    p_low bytea DEFAULT NULL, p_high bytea DEFAULT NULL,
    p_around_place bigint DEFAULT NULL, p_up_to boolean DEFAULT false, p_marks bytea[] DEFAULT '{}',
    p_dense boolean DEFAULT false
) RETURNS TABLE (
    total bigint, slice_first bigint, slice bytea[], slice_better bigint,
    slice_low bigint, slice_high bigint,
    member_places bigint[], member_better bigint[], member_keys bytea[], member_up_to bigint[],
    around_first bigint, around bytea[], around_better bigint, counts bigint[],
    epoch uuid, read_at timestamptz, snapshot text, lives text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_end bytea := decode(repeat('ff', 64), 'hex');  -- after every sort key
    v_from_key bytea := coalesce(p_low, '');
    v_from_member text := '';
    v_to_key bytea := coalesce(p_high, v_end);
    v_to_member text := '';
    v_middle bigint;
BEGIN
    SELECT s.epoch INTO epoch FROM truerank.setting AS s;
    -- Not the statement's time: of a prepared statement that is when it is executed, and its
    -- snapshot is older by then. The transaction's is never later than any of its snapshots.
    read_at := now();
    IF p_compared AND NOT pg_is_in_recovery() THEN
        snapshot := pg_current_snapshot()::text;
        lives := truerank.lives();
    END IF;
    SELECT count(*) INTO total FROM truerank.visible_standing AS s WHERE s.ranking = p_ranking;
    slice_low := CASE WHEN p_low IS NULL THEN 0
                 ELSE truerank.count_better(p_ranking, p_low) END;
    slice_high := CASE WHEN p_high IS NULL THEN total
                  ELSE truerank.count_better(p_ranking, p_high) END;
    IF p_start = 'after' AND (p_beside_key, p_beside_member) >= (v_from_key, v_from_member) THEN
        v_from_key := p_beside_key;
        v_from_member := p_beside_member;
    ELSIF p_start = 'before' AND (p_beside_key, p_beside_member) < (v_to_key, v_to_member) THEN
        v_to_key := p_beside_key;
        v_to_member := p_beside_member;
    END IF;
    slice := truerank.ranking_slice(
        p_ranking, v_from_key, v_from_member, v_to_key, v_to_member,
        CASE WHEN p_start = 'at' THEN p_offset ELSE 0 END, p_limit, p_start = 'before');
    slice_first := CASE p_start
        WHEN 'at' THEN slice_low + p_offset
        WHEN 'after' THEN greatest(slice_low, truerank.count_better(
            p_ranking, v_from_key, v_from_member || chr(1)))  -- the row itself counts
        ELSE greatest(slice_low, truerank.count_better(p_ranking, v_to_key, v_to_member)
                             - coalesce(cardinality(slice), 0)) END;
    slice_better := truerank.count_ahead(p_ranking, substr(slice[1], 1, p_row_bytes), p_dense);

    SELECT array_agg(truerank.count_better(p_ranking, s.sort_key, s.member) ORDER BY m.ord),
           array_agg(truerank.count_ahead(p_ranking, substr(s.sort_key, 1, p_row_bytes), p_dense)
                     ORDER BY m.ord),
           array_agg(s.sort_key ORDER BY m.ord),
           array_agg(CASE WHEN p_up_to THEN truerank.count_better(p_ranking, coalesce(
                              truerank.key_after(substr(s.sort_key, 1, p_row_bytes)), v_end))
                     END ORDER BY m.ord)
    INTO member_places, member_better, member_keys, member_up_to
    FROM unnest(p_members) WITH ORDINALITY AS m (member, ord)
    LEFT JOIN truerank.visible_standing AS s ON s.ranking = p_ranking AND s.member = m.member;

    v_middle := coalesce(p_around_place, member_places[1]);
    IF p_around_limit > 0 AND v_middle IS NOT NULL THEN
        around_first := greatest(
            0, least(v_middle - (p_around_limit - 1) / 2, total - p_around_limit));
        around := truerank.ranking_slice(
            p_ranking, '', '', v_end, '', around_first, p_around_limit);
        around_better := truerank.count_ahead(
            p_ranking, substr(around[1], 1, p_row_bytes), p_dense);
    END IF;
    SELECT array_agg(truerank.count_better(p_ranking, m.mark) ORDER BY m.ord) INTO counts
    FROM unnest(p_marks) WITH ORDINALITY AS m (mark, ord);
    RETURN NEXT;
END
$$;
