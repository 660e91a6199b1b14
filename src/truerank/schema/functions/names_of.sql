-- names_of: the ids whose events count for a member: its own, and those merged into it.
CREATE OR REPLACE FUNCTION truerank.names_of(p_member text) RETURNS text[]
LANGUAGE sql STABLE STRICT AS $$
    SELECT p_member || ARRAY(SELECT m.id FROM truerank.member AS m WHERE m.merged_into = p_member)
$$;
