-- check_totals: fail if a sum left the board's range, or may have done so on the way.
--
-- The sums of tie-breaks too: their range is that of 64 bits. A batch counts in the caller's order: +5 and -5 at the top of the range must refuse the first.
-- Where values of both signs come together, the total before, plus all gains and plus all losses,
-- bounds every order; if a bound is out of range the caller halves the batch until it is exact.
-- Raises:  numeric_value_out_of_range.
CREATE OR REPLACE FUNCTION truerank.check_totals(
    p_board truerank.board, p_seasons truerank.season[], p_changed truerank.changed[],
    p_members text[], p_values bigint[], p_at timestamptz[], p_ties bigint[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
    v_signs integer;
BEGIN
    IF v_tie_n > 0 AND 0 < ANY (p_ties) AND 0 > ANY (p_ties) THEN
        PERFORM FROM (
            SELECT r.ranking, e.member, i AS tie, sum(t.value) AS net,
                   sum(greatest(t.value, 0)) AS gains, sum(least(t.value, 0)) AS losses
            FROM unnest(p_members, p_at) WITH ORDINALITY AS e (member, at, ord)
            CROSS JOIN generate_series(1, v_tie_n) AS i
            CROSS JOIN LATERAL (SELECT p_ties[(e.ord - 1) * v_tie_n + i] AS value) AS t
            JOIN unnest(p_seasons) AS r ON e.at >= r.starts_at AND e.at < r.ends_at
            GROUP BY r.ranking, e.member, i
        ) AS f
        JOIN truerank.standing AS s ON s.ranking = f.ranking AND s.member = f.member
        WHERE s.ties[f.tie] - f.net + f.gains > 9223372036854775807
           OR s.ties[f.tie] - f.net + f.losses < -9223372036854775808
        LIMIT 1;
        IF FOUND THEN
            RAISE numeric_value_out_of_range;
        END IF;
    END IF;
    SELECT count(DISTINCT sign(v)) FILTER (WHERE v <> 0) INTO v_signs FROM unnest(p_values) AS v;
    IF v_signs < 2 AND p_board.total_min = -9223372036854775808
       AND p_board.total_max = 9223372036854775807 THEN
        RETURN;
    END IF;
    PERFORM FROM (
        SELECT r.ranking, e.member, sum(e.value) AS net,
               sum(greatest(e.value, 0)) AS gains, sum(least(e.value, 0)) AS losses
        FROM unnest(p_members, p_values, p_at) AS e (member, value, at)
        JOIN unnest(p_seasons) AS r ON e.at >= r.starts_at AND e.at < r.ends_at
        GROUP BY r.ranking, e.member
    ) AS f
    JOIN truerank.standing AS s ON s.ranking = f.ranking AND s.member = f.member
    WHERE s.score - f.net + f.gains > p_board.total_max
       OR s.score - f.net + f.losses < p_board.total_min
       OR s.score NOT BETWEEN p_board.total_min AND p_board.total_max
    LIMIT 1;
    IF FOUND THEN
        RAISE numeric_value_out_of_range;
    END IF;
END
$$;
