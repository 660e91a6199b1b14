-- owner_of: the member for whom events of an id count: itself, or the one it was merged into.
CREATE OR REPLACE FUNCTION truerank.owner_of(p_member text) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
    SELECT coalesce((SELECT m.merged_into FROM truerank.member AS m
                     WHERE m.id = p_member AND m.merged_into IS NOT NULL), p_member)
$$;
