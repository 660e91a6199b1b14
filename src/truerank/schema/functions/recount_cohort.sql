-- recount_cohort: recount_slice for a cohort: the events of the season, of its members alone.
CREATE OR REPLACE FUNCTION truerank.recount_cohort(
    p_board truerank.board, p_ranking bigint, p_after text, p_members_max integer
) RETURNS TABLE (member text, kind text, members integer, stored_score numeric,
                 stored_version bigint, stored_key bytea, counted_score numeric, counted_key bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_season truerank.season := truerank.season_of_ranking(p_board, p_ranking);
    v_of bigint := truerank.season_divided(p_ranking);
    v_walked text[];
BEGIN
    SELECT array_agg(w.id) INTO v_walked FROM (
        SELECT u.member AS id FROM (
            (SELECT m.member FROM truerank.cohort_member AS m
             WHERE m.cohort = p_ranking AND m.member > p_after COLLATE "C"
             ORDER BY m.member LIMIT p_members_max)
            UNION
            (SELECT s.member FROM truerank.standing AS s
             WHERE s.ranking = p_ranking AND s.member > p_after COLLATE "C"
             ORDER BY s.member LIMIT p_members_max)
        ) AS u ORDER BY u.member LIMIT p_members_max
    ) AS w;
    member := v_walked[cardinality(v_walked)];
    members := coalesce(cardinality(v_walked), 0);
    RETURN NEXT;
    RETURN QUERY
    SELECT u.id, CASE WHEN s.member IS NULL THEN 'missing'
                      WHEN f.sort_key IS NULL THEN 'extra' ELSE 'different' END,
           NULL::integer, truerank.in_units(s.score, p_board.decimals), s.version, s.sort_key,
           truerank.in_units(f.score, p_board.decimals), f.sort_key
    FROM unnest(v_walked) AS u (id)
    LEFT JOIN LATERAL truerank.fold_events(
        p_board, v_of, truerank.names_of(u.id), v_season.starts_at, v_season.ends_at) AS f
      ON truerank.owner_of(u.id) = u.id AND EXISTS (
          SELECT FROM truerank.cohort_member AS m
          WHERE m.season = v_of AND m.member = u.id AND m.cohort = p_ranking)
    LEFT JOIN truerank.standing AS s ON s.ranking = p_ranking AND s.member = u.id
    WHERE (s.score, s.ties, s.event_at, s.event_position, s.moved, s.sort_key) IS DISTINCT FROM
          (f.score, f.ties, f.event_at, f.event_position, f.moved, f.sort_key)
    ORDER BY 1;
END
$$;
