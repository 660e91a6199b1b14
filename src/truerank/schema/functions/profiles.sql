-- profiles: the names and public details of members; those without either are left out.
CREATE OR REPLACE FUNCTION truerank.profiles(p_members text[])
RETURNS TABLE (member text, display_name text, profile jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.id, m.display_name, m.profile FROM truerank.member AS m
    WHERE m.id = ANY (p_members) AND (m.display_name IS NOT NULL OR m.profile IS NOT NULL)
$$;
