-- forget_names: put stand-ins in the place of ids wherever they are kept, but in live events.
--
-- p_names and p_stand_ins: pairs. Of events that have ended only board, value, tie-breaks, time and
-- position stay. A reason that somebody gave for something about the person goes as well, and an id
-- of four characters or more wherever else it stands in a reason.
-- p_early: openings, keys and moves in leagues go too; later they are of a new life, as of another
-- id that was merged into this one since.
CREATE OR REPLACE FUNCTION truerank.forget_names(
    p_names text[], p_stand_ins text[], p_early boolean
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_texts text[];
    v_targets uuid[];
    v_board integer;
    v_name text;
    v_stand_in text;
    v_seasons bigint[];
BEGIN
    FOR v_board IN
        SELECT b.id FROM truerank.board AS b WHERE EXISTS (
            SELECT FROM unnest(p_names) AS n (name) CROSS JOIN LATERAL (
                SELECT FROM truerank.event AS e WHERE e.board_id = b.id AND e.member = n.name
                ORDER BY e.occurred_at LIMIT 1) AS e)
        ORDER BY b.id
    LOOP
        v_texts := ARRAY(
            SELECT e.event_text FROM truerank.event AS e
            WHERE e.board_id = v_board AND e.member = ANY (p_names) AND e.ended_at IS NOT NULL
              AND e.event_text IS NOT NULL);
        -- A correction that was under way names an event whose text has gone by now.
        v_targets := ARRAY(
            SELECT e.target FROM truerank.event AS e
            WHERE NOT p_early AND e.board_id = v_board AND e.member = ANY (p_names)
              AND e.ended_at IS NOT NULL AND e.target IS NOT NULL);
        UPDATE truerank.audit AS a SET subject = p_stand_ins[1], reason = 'erased', detail = '{}'
        WHERE a.board_id = v_board AND a.action IN ('void', 'amend', 'mend_parked', 'dismiss_parked')
          AND (a.subject = ANY (v_texts) OR cardinality(v_targets) > 0
               AND truerank.hashed_uuid(a.subject) = ANY (v_targets));
        UPDATE truerank.event AS e SET
            member = n.stand_in, event_text = NULL, metadata = NULL
        FROM unnest(p_names, p_stand_ins) AS n (name, stand_in)
        WHERE e.board_id = v_board AND e.member = n.name AND e.ended_at IS NOT NULL;
    END LOOP;
    FOR v_name, v_stand_in IN SELECT * FROM unnest(p_names, p_stand_ins) LOOP
        UPDATE truerank.audit AS a SET subject = v_stand_in, reason = 'erased', detail = '{}'
        WHERE a.subject = v_name OR EXISTS (
            SELECT FROM jsonb_each_text(a.detail) AS d WHERE d.value = v_name);
        UPDATE truerank.audit AS a SET actor = v_stand_in WHERE a.actor = v_name;
        UPDATE truerank.audit AS a SET reason = replace(a.reason, v_name, 'erased')
        WHERE char_length(v_name) >= 4 AND strpos(a.reason, v_name) > 0;
        UPDATE truerank.settlement_row AS r SET member = v_stand_in
        FROM truerank.settlement AS s
        WHERE r.ranking = s.ranking AND r.revision = s.revision AND r.member = v_name;
        UPDATE truerank.settlement AS s SET
            actor = CASE WHEN s.actor = v_name THEN v_stand_in ELSE s.actor END,
            reason = CASE WHEN char_length(v_name) >= 4 THEN replace(s.reason, v_name, 'erased')
                          ELSE s.reason END
        WHERE s.actor = v_name OR char_length(v_name) >= 4 AND strpos(s.reason, v_name) > 0;
        UPDATE truerank.award AS a SET member = v_stand_in WHERE a.member = v_name;
        UPDATE truerank.award AS a SET acknowledged_by = v_stand_in
        WHERE a.acknowledged_by = v_name;
        UPDATE truerank.award_past AS a SET acknowledged_by = v_stand_in
        WHERE a.acknowledged_by = v_name;
        -- Who is in a cohort with a standing there by now began anew. Who may be about to, see
        -- mirror_changes, is left for later, when it is waited for.
        IF NOT p_early THEN
            PERFORM FROM truerank.cohort_member AS m
            WHERE m.season IN (SELECT c.season FROM truerank.cohort AS c) AND m.member = v_name
            ORDER BY m.season FOR UPDATE OF m;
        END IF;
        v_seasons := ARRAY(
            SELECT m.season FROM truerank.cohort_member AS m
            WHERE m.season IN (SELECT c.season FROM truerank.cohort AS c) AND m.member = v_name
            FOR UPDATE OF m SKIP LOCKED);
        UPDATE truerank.cohort_member AS m SET member = v_stand_in
        WHERE m.season = ANY (v_seasons) AND m.member = v_name AND NOT EXISTS (
            SELECT FROM truerank.standing AS x WHERE x.ranking = m.season AND x.member = v_name);
        UPDATE truerank.league_move AS v SET member = v_stand_in
        FROM truerank.league AS l
        WHERE p_early AND v.board_id = l.board_id AND v.period = l.period AND v.member = v_name;
        -- A voided event's id may say whose it was. A prize is still given, or taken back.
        UPDATE truerank.webhook_delivery AS d SET
            member = v_stand_in,
            data = CASE WHEN d.kind = 'event.voided' THEN '{}' ELSE d.data END,
            ended_at = CASE WHEN d.kind = 'event.voided'
                            THEN coalesce(d.ended_at, clock_timestamp()) ELSE d.ended_at END,
            state = CASE WHEN d.kind = 'event.voided' AND d.state IN ('waiting', 'parked')
                         THEN 'cancelled' ELSE d.state END
        WHERE d.member = v_name
          -- Of a new life: the event, or the prize, has the id still.
          AND NOT EXISTS (SELECT FROM truerank.award AS a
                          WHERE a.id = (d.data ->> 'award')::bigint AND a.member = v_name)
          AND NOT EXISTS (
              SELECT FROM truerank.board AS b JOIN truerank.event AS e ON e.board_id = b.id
              WHERE e.member = v_name AND e.event_uuid = CASE
                  WHEN truerank.is_uuid(d.data ->> 'event_id') THEN (d.data ->> 'event_id')::uuid
                  ELSE truerank.hashed_uuid(d.data ->> 'event_id') END);
        UPDATE truerank.settlement_excluded AS x SET member = v_stand_in
        FROM truerank.settlement AS s
        WHERE x.ranking = s.ranking AND x.revision = s.revision AND x.member = v_name;
        UPDATE truerank.settlement_name AS s SET
            name = CASE WHEN s.name = v_name THEN v_stand_in ELSE s.name END,
            member = CASE WHEN s.member = v_name THEN v_stand_in ELSE s.member END
        WHERE v_name IN (s.name, s.member);
        -- The comparison begins the group anew, and what it found is counted anew.
        UPDATE truerank.reconciling AS r SET ranking = NULL, sort_key = NULL, member = NULL
        WHERE r.member = v_name;
        UPDATE truerank.reconciling AS r SET found = '{}', last_found = NULL
        WHERE jsonb_path_exists(jsonb_build_array(r.found, r.last_found), '$.** ? (@ == $name)',
                                jsonb_build_object('name', v_name));
        UPDATE truerank.rebuild AS r SET asked_by = v_stand_in WHERE r.asked_by = v_name;
        UPDATE truerank.rebuild AS r SET message = replace(r.message, v_name, 'erased')
        WHERE char_length(v_name) >= 4 AND strpos(r.message, v_name) > 0;
        UPDATE truerank.pruning AS p SET after_member = coalesce((
            SELECT e.member FROM truerank.event AS e
            WHERE e.board_id = p.board_id AND e.member < v_name ORDER BY e.member DESC LIMIT 1), '')
        WHERE p.after_member = v_name;
        UPDATE truerank.league AS l SET scanned_member = coalesce((
            SELECT s.member FROM truerank.standing AS s
            WHERE s.ranking = l.scanned_ranking AND s.member < v_name
            ORDER BY s.member DESC LIMIT 1), '')
        WHERE l.scanned_member = v_name;
        UPDATE truerank.board AS b SET filled_to = coalesce((
            SELECT e.member FROM truerank.event AS e
            WHERE e.board_id = b.id AND e.member < v_name ORDER BY e.member DESC LIMIT 1), '')
        WHERE b.filled_to = v_name;
        UPDATE truerank.freeze AS f SET
            actor = CASE WHEN f.actor = v_name THEN v_stand_in ELSE f.actor END,
            reason = CASE WHEN char_length(v_name) >= 4 THEN replace(f.reason, v_name, 'erased')
                          ELSE f.reason END
        WHERE f.actor = v_name OR char_length(v_name) >= 4 AND strpos(f.reason, v_name) > 0;
        UPDATE truerank.erasure AS e SET
            actor = CASE WHEN e.actor = v_name THEN v_stand_in ELSE e.actor END,
            reason = CASE WHEN char_length(v_name) >= 4 THEN replace(e.reason, v_name, 'erased')
                          ELSE e.reason END
        WHERE e.actor = v_name OR char_length(v_name) >= 4 AND strpos(e.reason, v_name) > 0;
        UPDATE truerank.freeze AS f SET logged_to = coalesce((
            SELECT s.member FROM truerank.standing AS s
            WHERE s.ranking = truerank.frozen_id(f.board_id, f.id) AND s.member < v_name
            ORDER BY s.member DESC LIMIT 1), '')
        WHERE f.logged_to = v_name;
    END LOOP;
    UPDATE truerank.parked AS p SET
        member = NULL, event_id = NULL, message = 'erased',
        done = coalesce(p.done, 'dismissed'), done_at = coalesce(p.done_at, clock_timestamp())
    WHERE p.member = ANY (p_names);
    UPDATE truerank.parked_standing AS p SET
        member = NULL, reason = 'erased', retry_at = clock_timestamp()
    WHERE p.member = ANY (p_names);
    DELETE FROM truerank.rate AS r WHERE r.member = ANY (p_names);
    DELETE FROM truerank.league_key AS k WHERE p_early AND k.member = ANY (p_names);
    DELETE FROM truerank.opening AS o WHERE p_early AND o.member = ANY (p_names);
END
$$;
