-- owners_of: for whom the events of each of these ids count, in the given order.
CREATE OR REPLACE FUNCTION truerank.owners_of(p_members text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- Where nobody was ever merged, or none of these, it costs next to nothing.
    IF NOT EXISTS (SELECT FROM truerank.member AS m WHERE m.merged_into IS NOT NULL)
       OR NOT EXISTS (SELECT FROM truerank.member AS m
                      WHERE m.id = ANY (p_members) AND m.merged_into IS NOT NULL) THEN
        RETURN p_members;
    END IF;
    RETURN ARRAY(SELECT truerank.owner_of(u.member)
                 FROM unnest(p_members) WITH ORDINALITY AS u (member, ord) ORDER BY u.ord);
END
$$;
