-- grant_caller: let a role do everything a caller may do, and touch no table.
--
-- Callers submit, read, and make boards. Corrections are an operator's, and workers need more.
CREATE OR REPLACE FUNCTION truerank.grant_caller(p_role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_function regprocedure;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA truerank TO %s', p_role);
    FOR v_function IN
        SELECT p.oid FROM pg_proc AS p
        WHERE p.pronamespace = 'truerank'::regnamespace AND p.proname IN (
            'submit_score', 'submit_scores', 'create_board', 'create_season', 'boards',
            'find_season', 'seasons', 'read_page', 'incarnation', 'lock_class',
            'explain_standing', 'read_standing')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', v_function, p_role);
    END LOOP;
END
$$;
