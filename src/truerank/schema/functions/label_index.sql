-- label_index: the period that a label of the right form names, or null where there is none.
--
-- 2026-13 and 2026-02-30 have the form and name nothing; the caller compares with period_label.
CREATE OR REPLACE FUNCTION truerank.label_index(p_period text, p_label text) RETURNS integer
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE p_period
        WHEN 'all' THEN 0
        WHEN 'day' THEN
            CASE WHEN substr(p_label, 6, 2) BETWEEN '01' AND '12' AND left(p_label, 4) > '0000'
            THEN make_date(left(p_label, 4)::integer, substr(p_label, 6, 2)::integer, 1)
                 - date '1970-01-01' + right(p_label, 2)::integer - 1 END
        WHEN 'week' THEN
            -- The week that holds 4 January is the first of its ISO year.
            CASE WHEN left(p_label, 4) > '0000'
            THEN floor((make_date(left(p_label, 4)::integer, 1, 4) - date '1969-12-29') / 7.0)
                 ::integer + right(p_label, 2)::integer - 1 END
        WHEN 'month' THEN
            CASE WHEN left(p_label, 4) > '0000'
            THEN left(p_label, 4)::integer * 12 + right(p_label, 2)::integer - 1 END
        WHEN 'year' THEN CASE WHEN p_label > '0000' THEN p_label::integer END
    END
$$;
