-- settled_before: how many places of a settlement come before some bytes of a sort key.
--
-- By halving: ordinals rise with keys.
CREATE OR REPLACE FUNCTION truerank.settled_before(
    p_ranking bigint, p_revision integer, p_population bigint, p_key bytea
) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint := 0;
    v_high bigint := p_population;
    v_middle bigint;
BEGIN
    WHILE v_low < v_high LOOP
        v_middle := (v_low + v_high) / 2;
        IF (SELECT r.sort_key < p_key FROM truerank.settlement_row AS r
            WHERE r.ranking = p_ranking AND r.revision = p_revision
              AND r.ordinal = v_middle + 1) THEN
            v_low := v_middle + 1;
        ELSE
            v_high := v_middle;
        END IF;
    END LOOP;
    RETURN v_low;
END
$$;
