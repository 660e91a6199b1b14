-- receipts: what to answer for each event, with the standings as they are now.
--
-- No merge joins: from 60,000 events on the planner would merge by ranking alone, and compare each
-- event of a season with each change in it. Joins by hashing use the member, too.
CREATE OR REPLACE FUNCTION truerank.receipts(
    p_board truerank.board, p_seasons truerank.season[], p_event truerank.prepared_events,
    p_done truerank.stored_events, p_members text[], p_changed truerank.changed[]
) RETURNS SETOF truerank.receipt
LANGUAGE plpgsql SET enable_mergejoin = off AS $$
DECLARE
    v_at timestamptz[] := p_event.at;
    v_seasons truerank.season[] := p_seasons;
    v_runs truerank.season_run[];
BEGIN
    IF p_done.outcomes IS NULL THEN
        v_runs := truerank.season_runs(v_seasons);
        RETURN QUERY
        SELECT u.ord::integer, 'applied', NULL::text, r.label,
               truerank.in_units(coalesce(c.score, s.score), p_board.decimals),
               coalesce(c.version, s.version), p_done.xid
        FROM unnest(p_members, v_at) WITH ORDINALITY AS u (member, at, ord)
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, u.at) AS f
        JOIN truerank.season_rows(v_seasons) AS r ON r.ranking = f.ranking
        LEFT JOIN truerank.changed_rows(p_changed) AS c
          ON c.ranking = r.ranking AND c.member = u.member
        -- What didn't change, such as a best that is not beaten, is read.
        LEFT JOIN LATERAL (
            SELECT x.score, x.version FROM truerank.standing AS x
            WHERE c.version IS NULL AND x.ranking = r.ranking AND x.member = u.member
            OFFSET 0
        ) AS s ON true
        ORDER BY u.ord, r.ranking;
        RETURN;
    END IF;

    -- A duplicate belongs to the seasons of its first write, which may be past ones.
    SELECT array_agg(CASE WHEN u.outcome IN ('applied', 'duplicate') THEN u.first_at END
                     ORDER BY u.ord)
    INTO v_at
    FROM unnest(p_done.outcomes, p_done.first_at) WITH ORDINALITY AS u (outcome, first_at, ord);
    SELECT array_agg(s) INTO v_seasons FROM truerank.seasons_of(p_board, v_at) AS s;
    v_runs := truerank.season_runs(v_seasons);
    RETURN QUERY
    SELECT u.ord::integer, coalesce(u.outcome, 'refused'),
           CASE WHEN u.outcome IS NULL THEN u.code END, r.label, truerank.in_units(s.score, p_board.decimals), s.version, u.xid
    FROM unnest(p_members, v_at, p_event.codes, p_done.outcomes, p_done.xids)
        WITH ORDINALITY AS u (member, at, code, outcome, xid, ord)
    LEFT JOIN LATERAL truerank.seasons_at(v_runs, u.at) AS f
      ON u.outcome IN ('applied', 'duplicate')
    LEFT JOIN truerank.season_rows(v_seasons) AS r ON r.ranking = f.ranking
    LEFT JOIN truerank.standing AS s ON s.ranking = r.ranking AND s.member = u.member
    ORDER BY u.ord, r.ranking;
END
$$;
