-- note_reconciling: note how far the comparison has come, and what it has found; p_grp null: it ended.
--
-- Returns: false where another worker has taken it over meanwhile: then nothing was noted.
CREATE OR REPLACE FUNCTION truerank.note_reconciling(
    p_holder uuid, p_hold_ms integer, p_grp integer, p_ranking bigint, p_sort_key bytea,
    p_member text, p_found jsonb
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE truerank.reconciling AS r SET
        held_until = clock_timestamp() + p_hold_ms * interval '1 millisecond',
        grp = p_grp, ranking = p_ranking, sort_key = p_sort_key, member = p_member,
        found = p_found,
        last_found = CASE WHEN p_grp IS NULL THEN p_found ELSE r.last_found END,
        last_ended_at = CASE WHEN p_grp IS NULL THEN clock_timestamp() ELSE r.last_ended_at END,
        last_took_ms = CASE WHEN p_grp IS NULL
            THEN extract(epoch FROM clock_timestamp() - r.began_at) * 1000
            ELSE r.last_took_ms END
    WHERE r.holder = p_holder;
    RETURN FOUND;
END
$$;
