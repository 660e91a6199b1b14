-- ask_rebuilds: ask for a new copy of groups, or for the way back to the copies before.
--
-- One request per group is open at a time: who asks for the same joins it.
-- p_kind: rebuild, or back; p_keep_ms: how long the copy before follows along after the switch.
-- Returns: one row per group: the open request, or a code for which there is none: group_unknown,
--          no_way_back (no copy before follows along), rebuild_open (a request of the other kind).
CREATE OR REPLACE FUNCTION truerank.ask_rebuilds(
    p_groups smallint[], p_kind text, p_cause text, p_throttled boolean, p_keep_ms integer,
    p_asked_by text
) RETURNS TABLE (grp smallint, id bigint, code text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_former uuid;
BEGIN
    DELETE FROM truerank.rebuild AS r WHERE r.ended_at < clock_timestamp() - interval '30 days';
    FOR grp IN SELECT DISTINCT g FROM unnest(p_groups) AS g ORDER BY g LOOP
        id := NULL;
        code := NULL;
        v_former := NULL;
        IF p_kind = 'back' THEN
            -- What is asked for must not go away before it is done.
            UPDATE truerank.generation AS g
            SET kept_until = greatest(g.kept_until, clock_timestamp() + interval '1 minute')
            WHERE g.grp = ask_rebuilds.grp AND g.state = 'former'
              AND g.kept_until > clock_timestamp()
            RETURNING g.id INTO v_former;
        END IF;
        IF NOT EXISTS (SELECT FROM truerank.lease AS l WHERE l.grp = ask_rebuilds.grp) THEN
            code := 'group_unknown';
        ELSIF p_kind = 'back' AND v_former IS NULL THEN
            code := 'no_way_back';
        ELSE
            INSERT INTO truerank.rebuild AS r
                (grp, kind, cause, throttled, keep_ms, asked_by, generation)
            VALUES (ask_rebuilds.grp, p_kind, p_cause, p_throttled,
                    CASE WHEN p_kind = 'back' THEN 0 ELSE p_keep_ms END, p_asked_by, v_former)
            ON CONFLICT DO NOTHING
            RETURNING r.id INTO id;
            IF id IS NULL THEN
                -- In a statement of its own: one that was just asked for is seen.
                SELECT r.id, CASE WHEN r.kind <> p_kind THEN 'rebuild_open' END INTO id, code
                FROM truerank.rebuild AS r
                WHERE r.grp = ask_rebuilds.grp AND r.ended_at IS NULL;
                IF id IS NULL THEN
                    code := 'rebuild_open';  -- it has ended just now: ask again
                END IF;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
