-- count_before: how many of a ranking come before each of some pairs of sort key and member.
--
-- With an empty member: before all whose sort key begins with these bytes. Null for a null key.
-- Only those from p_from_key on are counted, and none that p_withheld names (null: nobody).
-- p_distinct: count different first bytes of so many, not members; the keys are of that length.
-- Cost: one walk down the index, linear in the last of the places however many are asked for.
CREATE OR REPLACE FUNCTION truerank.count_before(
    p_ranking bigint, p_keys bytea[], p_members text[], p_withheld text[],
    p_from_key bytea DEFAULT '', p_distinct integer DEFAULT NULL
) RETURNS bigint[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_counts bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_keys)]);
    v_walked bigint := 0;  -- those before p_from_key
    v_before bigint;
    v_key bytea;
    v_member text;
    v_ord integer;
BEGIN
    FOR v_key, v_member, v_ord IN
        SELECT u.key, u.member, u.ord
        FROM unnest(p_keys, p_members) WITH ORDINALITY AS u (key, member, ord)
        WHERE u.key IS NOT NULL ORDER BY u.key
    LOOP
        -- Whole keys first: to compare keys and members as rows takes twice as long, and hardly
        -- ever do two members share a key.
        IF v_key > p_from_key AND p_distinct IS NULL THEN
            SELECT v_walked + count(*) INTO v_walked FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.sort_key >= p_from_key AND s.sort_key < v_key
              AND (p_withheld IS NULL OR s.member NOT IN (SELECT w FROM unnest(p_withheld) AS w));
            p_from_key := v_key;
        ELSIF v_key > p_from_key THEN
            SELECT v_walked + count(DISTINCT substr(s.sort_key, 1, p_distinct)) INTO v_walked
            FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.sort_key >= p_from_key AND s.sort_key < v_key
              AND (p_withheld IS NULL OR s.member NOT IN (SELECT w FROM unnest(p_withheld) AS w));
            p_from_key := v_key;
        END IF;
        v_before := v_walked;
        IF v_member <> '' THEN
            SELECT v_walked + count(*) INTO v_before FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.sort_key = v_key AND s.member < v_member COLLATE "C"
              AND (p_withheld IS NULL OR s.member NOT IN (SELECT w FROM unnest(p_withheld) AS w));
        END IF;
        v_counts[v_ord] := v_before;
    END LOOP;
    RETURN v_counts;
END
$$;
