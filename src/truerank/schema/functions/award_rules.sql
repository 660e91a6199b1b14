-- award_rules: the rules of a board that hold for seasons that are yet to be settled.
CREATE OR REPLACE FUNCTION truerank.award_rules(p_board_id integer)
RETURNS TABLE (period text, name text, kind text, numbering text, rank_from bigint, rank_to bigint,
               percent numeric, score numeric, made_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.period, r.name, r.kind, r.numbering, r.rank_from, r.rank_to, r.percent,
           truerank.in_units(r.score, b.decimals), r.made_at
    FROM truerank.award_rule AS r JOIN truerank.board AS b ON b.id = r.board_id
    WHERE r.board_id = p_board_id AND r.dropped_at IS NULL
    ORDER BY r.period, r.name
$$;
