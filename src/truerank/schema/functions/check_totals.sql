-- check_totals: fail if a sum left the board's range, or may have done so on the way.
--
-- A total that is outside already, because the range was changed, may come nearer to it, and stay
-- outside meanwhile; it may not get farther away. The sums of tie-breaks have a range too: 64 bits.
-- A batch counts in the caller's order: +5 and -5 at the top of the range must refuse the first.
-- Where several events come together, the total before, plus all gains and plus all losses,
-- bounds every order; if a bound is out of range the caller halves the batch until it is exact.
-- Raises:  numeric_value_out_of_range.
CREATE OR REPLACE FUNCTION truerank.check_totals(
    p_board truerank.board, p_seasons truerank.season[], p_changed truerank.changed[],
    p_members text[], p_values bigint[], p_at timestamptz[], p_ties bigint[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tie_n integer := cardinality(p_board.tie_names);
    v_runs truerank.season_run[];
    v_signs integer;
BEGIN
    IF v_tie_n > 0 AND 0 < ANY (p_ties) AND 0 > ANY (p_ties) THEN
        v_runs := truerank.season_runs(p_seasons);
        PERFORM FROM (
            SELECT r.ranking, e.member, i AS tie, sum(t.value) AS net,
                   sum(greatest(t.value, 0)) AS gains, sum(least(t.value, 0)) AS losses
            FROM unnest(p_members, p_at) WITH ORDINALITY AS e (member, at, ord)
            CROSS JOIN generate_series(1, v_tie_n) AS i
            CROSS JOIN LATERAL (SELECT p_ties[(e.ord - 1) * v_tie_n + i] AS value) AS t
            CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
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
    v_runs := coalesce(v_runs, truerank.season_runs(p_seasons));
    PERFORM FROM (
        SELECT r.ranking, e.member, count(*) AS n, sum(e.value) AS net,
               sum(greatest(e.value, 0)) AS gains, sum(least(e.value, 0)) AS losses
        FROM unnest(p_members, p_values, p_at) AS e (member, value, at)
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.at) AS r
        GROUP BY r.ranking, e.member
    ) AS f
    JOIN truerank.standing AS s ON s.ranking = f.ranking AND s.member = f.member
    CROSS JOIN LATERAL (SELECT s.score - f.net AS total) AS before
    -- A row just inserted has no version yet, and had no total before: none that is outside.
    CROSS JOIN LATERAL truerank.total_bounds(
        p_board, CASE WHEN s.version <> 0 THEN before.total END) AS b
    WHERE s.score NOT BETWEEN b.least AND b.most
       OR f.n > 1 AND (before.total + f.gains > b.most OR before.total + f.losses < b.least)
    LIMIT 1;
    IF FOUND THEN
        RAISE numeric_value_out_of_range;
    END IF;
END
$$;
