-- count_before: how many of a ranking come before each of some pairs of sort key and member.
--
-- With an empty member: before all whose sort key begins with these bytes. Null for a null key.
-- Only those from p_from_key on are counted, and none that p_withheld names (null: nobody).
-- p_withheld_keys are their sort keys; both in the order of the ranking.
-- p_ordered: so are the pairs, and needn't be sorted.
-- p_distinct: count different first bytes of so many, not members; no key parts two that agree in
-- them.
-- Cost: one walk down the index, linear in the last of the places however many are asked for.
CREATE OR REPLACE FUNCTION truerank.count_before(
    p_ranking bigint, p_keys bytea[], p_members text[], p_withheld text[], p_withheld_keys bytea[],
    p_from_key bytea DEFAULT '', p_ordered boolean DEFAULT false, p_distinct integer DEFAULT NULL
) RETURNS bigint[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_counts bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_keys)]);
    v_order bigint[];  -- null: as they are
    v_walked bigint := 0;  -- those before p_from_key
    v_withheld integer := 0;  -- those of them who are withheld
    v_before bigint;
    v_key bytea;
    v_member text;
    v_ord integer;
BEGIN
    IF NOT p_ordered THEN
        v_order := ARRAY(
            SELECT u.ord FROM unnest(p_keys, p_members) WITH ORDINALITY AS u (key, member, ord)
            ORDER BY u.key, u.member COLLATE "C");
    END IF;
    IF p_withheld IS NOT NULL AND p_distinct IS NULL THEN
        WHILE p_withheld_keys[v_withheld + 1] < p_from_key LOOP
            v_withheld := v_withheld + 1;
            v_walked := v_walked + 1;
        END LOOP;
    END IF;
    FOR v_at IN 1 .. cardinality(p_keys) LOOP
        v_ord := coalesce(v_order[v_at], v_at);
        v_key := p_keys[v_ord];
        CONTINUE WHEN v_key IS NULL;
        v_member := p_members[v_ord];
        -- Whole keys first: to compare keys and members as rows takes twice as long, and hardly
        -- ever do two members share a key. And all of them: to look each up among those who are
        -- withheld takes a quarter of the time.
        IF v_key > p_from_key AND p_distinct IS NULL THEN
            SELECT v_walked + count(*) INTO v_walked FROM truerank.standing AS s
            WHERE s.ranking = p_ranking AND s.sort_key >= p_from_key AND s.sort_key < v_key;
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
            WHERE s.ranking = p_ranking AND s.sort_key = v_key AND s.member < v_member COLLATE "C";
        END IF;
        IF p_withheld IS NOT NULL AND p_distinct IS NULL THEN
            WHILE (p_withheld_keys[v_withheld + 1], p_withheld[v_withheld + 1] COLLATE "C")
                  < (v_key, v_member) LOOP
                v_withheld := v_withheld + 1;
            END LOOP;
        END IF;
        v_counts[v_ord] := v_before - v_withheld;
    END LOOP;
    RETURN v_counts;
END
$$;
