-- tie_bytes: the tie-break values of a row as bytes, best first; eight bytes a column.
--
-- A column that descends is stored as its bitwise complement, which has no overflow.
CREATE OR REPLACE FUNCTION truerank.tie_bytes(p_ties bigint[], p_descending boolean[])
RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(
        truerank.signed_bytes(CASE WHEN t.descending THEN ~t.tie ELSE t.tie END), ''::bytea
        ORDER BY t.ord), ''::bytea)
    FROM unnest(p_ties, p_descending) WITH ORDINALITY AS t (tie, descending, ord)
$$;
