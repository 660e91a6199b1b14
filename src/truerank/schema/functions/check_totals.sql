-- check_totals: fail if a sum left the board's range, or may have done so on the way.
--
-- A batch counts in the caller's order: +5 and -5 at the top of the range must refuse the first.
-- Where values of both signs come together, the total before, plus all gains and plus all losses,
-- bounds every order; if a bound is out of range the caller halves the batch until it is exact.
-- Raises:  numeric_value_out_of_range.
CREATE OR REPLACE FUNCTION truerank.check_totals(
    p_board truerank.board, p_seasons truerank.season[], p_changed truerank.changed[],
    p_members text[], p_values bigint[], p_at timestamptz[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_signs integer;
BEGIN
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
