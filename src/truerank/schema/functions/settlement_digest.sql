-- settlement_digest: the digest of a stored settlement, computed from its rows.
--
-- SHA-256, chained: it begins with 'truerank settlement 1 <ranking>' in UTF-8; then each thousand
-- rows in their order are hashed behind the digest so far, the last thousand as it is. A row is its
-- ordinal, competition and dense rank (8 bytes each, big-endian), the member's stand-in (16 bytes)
-- and the sort key, which holds score, tie-breaks, the instant it was reached, and the position.
-- Returns: also what is summed up on the way.
CREATE OR REPLACE FUNCTION truerank.settlement_digest(
    p_ranking bigint, p_revision integer,
    OUT population bigint, OUT different bigint, OUT total numeric, OUT digest bytea
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_slice record;
BEGIN
    population := 0;
    different := 0;
    total := 0;
    digest := truerank.settlement_seed(p_ranking);
    LOOP
        -- Slice by slice along the index, so that nothing is sorted and little is held.
        SELECT string_agg(truerank.settlement_bytes(
                   r.ordinal, r.competition, r.dense, r.stand_in, r.sort_key), ''::bytea
                   ORDER BY r.ordinal) AS bytes,
               count(*) AS rows, max(r.dense) AS dense, sum(r.score) AS score
        INTO v_slice
        FROM truerank.settlement_row AS r
        WHERE r.ranking = p_ranking AND r.revision = p_revision
          AND r.ordinal > population AND r.ordinal <= population + 1000;
        EXIT WHEN v_slice.rows = 0;
        digest := sha256(digest || v_slice.bytes);
        population := population + v_slice.rows;
        different := v_slice.dense;
        total := total + v_slice.score;
    END LOOP;
END
$$;
