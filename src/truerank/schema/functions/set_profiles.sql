-- set_profiles: give members a name and public details; null takes either away.
--
-- Callable in anybody's transaction. Not a command: the last one counts, and repeating it does no
-- harm. A member needs no score to have a name.
-- Locks:   rows of truerank.member in order of ids.
-- Raises:  check_violation for a name of more than 200 characters or details of more than 1 KB.
CREATE OR REPLACE FUNCTION truerank.set_profiles(
    p_members text[], p_names text[], p_profiles jsonb[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF cardinality(p_members) <> cardinality(p_names)
       OR cardinality(p_members) <> cardinality(p_profiles) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the arrays differ in length';
    END IF;
    INSERT INTO truerank.member AS m (id, display_name, profile)
    SELECT DISTINCT ON (u.member COLLATE "C") u.member, u.display_name, u.profile
    FROM unnest(p_members, p_names, p_profiles)
        WITH ORDINALITY AS u (member, display_name, profile, ord)
    ORDER BY u.member COLLATE "C", u.ord DESC
    ON CONFLICT (id) DO UPDATE SET
        display_name = excluded.display_name, profile = excluded.profile,
        changed_at = clock_timestamp();
END
$$;
