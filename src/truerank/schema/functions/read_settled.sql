-- read_settled: what read_page answers, from the settlement of a season: as it was when it became
-- final, whatever came later.
--
-- p_revision null: the newest. Places are those of the settlement; a member who is hidden, banned,
-- merged or deleted today keeps the place, but is called by its stand-in there, and has none of its
-- own to be asked for. All else as in read_page.
-- Returns: no row where the season has no such settlement.
CREATE OR REPLACE FUNCTION truerank.read_settled(
    p_ranking bigint, p_revision integer, p_row_bytes integer, p_offset bigint, p_limit integer,
    p_members text[], p_around_limit integer, p_start text DEFAULT 'at',
    p_beside_key bytea DEFAULT NULL, p_low bytea DEFAULT NULL, p_high bytea DEFAULT NULL,
    p_around_place bigint DEFAULT NULL, p_marks bytea[] DEFAULT '{}', p_dense boolean DEFAULT false
) RETURNS TABLE (
    revision integer, settled_at timestamptz,
    total bigint, slice_first bigint, slice bytea[], slice_better bigint,
    slice_low bigint, slice_high bigint,
    member_places bigint[], member_better bigint[], member_keys bytea[], member_up_to bigint[],
    around_first bigint, around bytea[], around_better bigint, counts bigint[], states text[],
    epoch uuid
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_revision integer;
    v_until bigint;
    v_middle bigint;
BEGIN
    SELECT s.revision, s.settled_at, s.population INTO v_revision, settled_at, total
    FROM truerank.settlement AS s
    WHERE s.ranking = p_ranking AND (p_revision IS NULL OR s.revision = p_revision)
    ORDER BY s.revision DESC LIMIT 1;
    IF v_revision IS NULL THEN
        RETURN;
    END IF;
    revision := v_revision;
    SELECT s.epoch INTO epoch FROM truerank.setting AS s;
    states := truerank.states_on((p_ranking >> 36)::integer, p_members);
    slice_low := CASE WHEN p_low IS NULL THEN 0
                 ELSE truerank.settled_before(p_ranking, v_revision, total, p_low) END;
    slice_high := CASE WHEN p_high IS NULL THEN total
                  ELSE truerank.settled_before(p_ranking, v_revision, total, p_high) END;
    slice_first := slice_low + p_offset;
    v_until := slice_high;
    IF p_start = 'after' THEN
        -- No two keys of a settlement are equal: the row itself counts.
        slice_first := greatest(slice_low, truerank.settled_before(
            p_ranking, v_revision, total, coalesce(p_beside_key, '') || '\x00'));
    ELSIF p_start = 'before' THEN
        v_until := least(slice_high, truerank.settled_before(
            p_ranking, v_revision, total, p_beside_key));
        slice_first := greatest(slice_low, v_until - p_limit);
    END IF;
    SELECT s.rows, s.better INTO slice, slice_better
    FROM truerank.settled_slice(p_ranking, v_revision, slice_first,
                                least(slice_first + p_limit, v_until), p_dense) AS s;

    SELECT array_agg(r.ordinal - 1 ORDER BY m.ord),
           array_agg(CASE WHEN p_dense THEN r.dense ELSE r.competition END - 1 ORDER BY m.ord),
           array_agg(r.sort_key ORDER BY m.ord),
           array_agg(CASE WHEN r.ordinal IS NOT NULL THEN truerank.settled_before(
                         p_ranking, v_revision, total, coalesce(truerank.key_after(
                             substr(r.sort_key, 1, p_row_bytes)), decode(repeat('ff', 64), 'hex')))
                     END ORDER BY m.ord)
    INTO member_places, member_better, member_keys, member_up_to
    FROM unnest(p_members, states) WITH ORDINALITY AS m (member, state, ord)
    LEFT JOIN truerank.settlement_row AS r
      ON r.ranking = p_ranking AND r.revision = v_revision AND r.member = m.member
     AND r.left_at IS NULL AND m.state = 'active';

    v_middle := coalesce(p_around_place, member_places[1]);
    IF p_around_limit > 0 AND v_middle IS NOT NULL THEN
        around_first := greatest(
            0, least(v_middle - (p_around_limit - 1) / 2, total - p_around_limit));
        SELECT s.rows, s.better INTO around, around_better
        FROM truerank.settled_slice(p_ranking, v_revision, around_first,
                                    least(around_first + p_around_limit, total), p_dense) AS s;
    END IF;
    SELECT array_agg(truerank.settled_before(p_ranking, v_revision, total, m.mark) ORDER BY m.ord)
    INTO counts
    FROM unnest(p_marks) WITH ORDINALITY AS m (mark, ord);
    IF p_dense AND counts IS NOT NULL THEN
        counts := counts || ARRAY(
            SELECT coalesce(r.dense, 0)
            FROM unnest(counts) WITH ORDINALITY AS c (place, ord)
            LEFT JOIN truerank.settlement_row AS r
              ON r.ranking = p_ranking AND r.revision = v_revision AND r.ordinal = c.place
            ORDER BY c.ord);
    END IF;
    RETURN NEXT;
END
$$;
