-- note_rankings: make the rows of computed rankings, for listing.
--
-- Not done by commands: the first writer of a new week would hold everybody until it commits.
CREATE OR REPLACE FUNCTION truerank.note_rankings(p_ids bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at)
    SELECT r.id, b.id, p.period, truerank.period_label(p.period, p.index),
           truerank.period_start(p.period, b.zone, p.index),
           truerank.period_start(p.period, b.zone, p.index + 1)
    FROM unnest(p_ids) AS r (id)
    JOIN truerank.board AS b ON b.id = r.id >> 36
    CROSS JOIN LATERAL (
        SELECT (ARRAY['all', 'day', 'week', 'month', 'year'])[((r.id >> 32) & 15)::integer]
                   AS period,
               ((r.id & 4294967295) - 2147483648)::integer AS index
    ) AS p
    WHERE p.period IS NOT NULL
    ORDER BY r.id
    ON CONFLICT DO NOTHING
$$;
