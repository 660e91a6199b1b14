-- settlement_bytes: a place of a settlement as the bytes that are hashed.
CREATE OR REPLACE FUNCTION truerank.settlement_bytes(
    p_ordinal bigint, p_competition bigint, p_dense bigint, p_stand_in bytea, p_sort_key bytea
) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int8send(p_ordinal) || int8send(p_competition) || int8send(p_dense)
        || p_stand_in || p_sort_key
$$;
