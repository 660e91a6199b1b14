-- set_profiles: give members a name and public details; null takes either away.
--
-- Callable in anybody's transaction. Not a command: the last one counts, and repeating it does no
-- harm. A member needs no score to have a name. What is said of an id that was merged holds for the
-- account it was merged into, unless that is among p_members itself.
-- Locks:   rows of truerank.member in order of ids; then those of accounts that others were merged
--          into.
-- Raises:  check_violation for an id or a name of more than 200 characters, details of more than 1 KB.
CREATE OR REPLACE FUNCTION truerank.set_profiles(
    p_members text[], p_names text[], p_profiles jsonb[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_broken text;
BEGIN
    IF cardinality(p_members) <> cardinality(p_names)
       OR cardinality(p_members) <> cardinality(p_profiles) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the arrays differ in length';
    END IF;
    -- PostgreSQL would show the whole row in its message, and keep that in the server's log.
    SELECT min(r.constraint_name) INTO v_broken
    FROM unnest(p_members, p_names, p_profiles) AS u (member, display_name, profile)
    CROSS JOIN LATERAL (VALUES
        ('member_id_check', char_length(u.member) BETWEEN 1 AND 200),
        ('member_display_name_check', char_length(u.display_name) BETWEEN 1 AND 200),
        ('member_profile_check', octet_length(u.profile::text) <= 1024)
    ) AS r (constraint_name, kept)
    WHERE NOT r.kept;
    IF v_broken IS NOT NULL THEN
        RAISE check_violation USING
            CONSTRAINT = v_broken, MESSAGE = 'an id, a name or details are too long, or empty';
    END IF;
    INSERT INTO truerank.member AS m (id, display_name, profile)
    SELECT DISTINCT ON (u.member COLLATE "C") u.member, u.display_name, u.profile
    FROM unnest(p_members, p_names, p_profiles)
        WITH ORDINALITY AS u (member, display_name, profile, ord)
    ORDER BY u.member COLLATE "C", u.ord DESC
    ON CONFLICT (id) DO UPDATE SET
        display_name = excluded.display_name, profile = excluded.profile,
        changed_at = clock_timestamp();
    -- A later statement: a merge may have been waited for.
    INSERT INTO truerank.member AS m (id, display_name, profile)
    SELECT DISTINCT ON (a.merged_into) a.merged_into, u.display_name, u.profile
    FROM unnest(p_members, p_names, p_profiles)
        WITH ORDINALITY AS u (member, display_name, profile, ord)
    JOIN truerank.member AS a ON a.id = u.member AND a.merged_into IS NOT NULL
    WHERE a.merged_into <> ALL (p_members)
    ORDER BY a.merged_into, u.ord DESC
    ON CONFLICT (id) DO UPDATE SET
        display_name = excluded.display_name, profile = excluded.profile,
        changed_at = clock_timestamp();
END
$$;
