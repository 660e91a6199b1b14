-- settles_at: when a season that isn't final may be; null: nobody knows, or it is final.
--
-- It is closed at the end of its board's grace, or now where that is over, and settled a hold later.
CREATE OR REPLACE FUNCTION truerank.settles_at(p_board_id integer, p_label text)
RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    SELECT CASE
        WHEN s.state = 'sealed' THEN s.hold_until
        WHEN s.state = 'open' AND s.closes_at IS NOT NULL THEN b.hold + CASE
            WHEN b.hold = interval '0' THEN s.closes_at
            ELSE greatest(s.closes_at, statement_timestamp()) END
        END
    FROM truerank.board AS b
    CROSS JOIN LATERAL truerank.find_season(b.id, p_label) AS s
    WHERE b.id = p_board_id
$$;
