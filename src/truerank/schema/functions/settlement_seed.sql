-- settlement_seed: with what the digest of a ranking's settlement begins.
CREATE OR REPLACE FUNCTION truerank.settlement_seed(p_ranking bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT sha256(convert_to('truerank settlement 1 ' || p_ranking, 'UTF8'))
$$;
