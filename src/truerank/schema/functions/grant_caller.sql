-- grant_caller: let a role do everything a caller may do, and touch no table.
--
-- Callers submit, read, make boards, and say whether members are hidden, banned or deleted.
-- Corrections and merges are an operator's, and workers need more.
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
            'find_season', 'seasons', 'read_page', 'incarnation', 'source_epoch', 'lock_class',
            'explain_standing', 'read_standing', 'export_slice', 'installation', 'profiles', 'set_profiles',
            'states_on', 'bans_ended', 'lift_bans', 'fold_populations', 'member_states', 'set_member_state',
            'changed_since', 'still_open', 'read_settled', 'settlements', 'privacy_tick', 'shown_ranking', 'frozen_rankings', 'is_known', 'find_cohort', 'cohorts', 'name_rankings', 'read_history', 'settles_at')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', v_function, p_role);
    END LOOP;
END
$$;
