-- end_rebuild: close a request that can't be carried out, with the reason.
CREATE OR REPLACE FUNCTION truerank.end_rebuild(p_id bigint, p_code text, p_message text)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE truerank.rebuild
    SET ended_at = clock_timestamp(), outcome = 'failed', code = p_code, message = p_message
    WHERE id = p_id AND ended_at IS NULL
$$;
