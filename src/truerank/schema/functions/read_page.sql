-- read_page: what page.lua answers from the projection, answered from the source.
--
-- One snapshot: that of the calling statement. Places count from 0. p_row_bytes is how many
-- leading bytes of a sort key (score and tie-breaks) decide whether two are equal.
-- Rows are sort key and member in UTF-8, in one byte string, in order.
CREATE OR REPLACE FUNCTION truerank.read_page(
    p_ranking bigint, p_row_bytes integer, p_offset bigint, p_limit integer, p_members text[],
    p_around_limit integer
) RETURNS TABLE (
    total bigint, slice bytea[], slice_better bigint,
    member_places bigint[], member_better bigint[], member_keys bytea[],
    around_first bigint, around bytea[], around_better bigint,
    epoch uuid, read_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT s.epoch INTO epoch FROM truerank.setting AS s;
    read_at := statement_timestamp();
    SELECT count(*) INTO total FROM truerank.visible_standing AS s WHERE s.ranking = p_ranking;
    slice := truerank.ranking_slice(p_ranking, p_offset, p_limit);
    slice_better := truerank.count_better(p_ranking, substr(slice[1], 1, p_row_bytes));

    SELECT array_agg(truerank.count_better(p_ranking, s.sort_key) ORDER BY m.ord),
           array_agg(truerank.count_better(p_ranking, substr(s.sort_key, 1, p_row_bytes))
                     ORDER BY m.ord),
           array_agg(s.sort_key ORDER BY m.ord)
    INTO member_places, member_better, member_keys
    FROM unnest(p_members) WITH ORDINALITY AS m (member, ord)
    LEFT JOIN truerank.visible_standing AS s ON s.ranking = p_ranking AND s.member = m.member;

    IF p_around_limit > 0 AND member_places[1] IS NOT NULL THEN
        around_first := greatest(
            0, least(member_places[1] - (p_around_limit - 1) / 2, total - p_around_limit));
        around := truerank.ranking_slice(p_ranking, around_first, p_around_limit);
        around_better := truerank.count_better(p_ranking, substr(around[1], 1, p_row_bytes));
    END IF;
    RETURN NEXT;
END
$$;
