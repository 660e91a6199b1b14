-- attached_items: what is to be done about rows: facts that a table no longer holds, and new ones.
--
-- An id on both sides is one correction. Of an id that is withdrawn the revision's row is locked,
-- and made where it is missing: whoever works on the same id comes after us.
-- Returns: new facts in their order, then those to void; given is the time of the old fact.
CREATE OR REPLACE FUNCTION truerank.attached_items(
    p_board_id integer, p_old truerank.attached_fact[], p_new truerank.attached_fact[]
) RETURNS truerank.attached_item[]
LANGUAGE plpgsql AS $$
DECLARE
    v_item truerank.attached_item[];
BEGIN
    IF cardinality(p_old) > 0 THEN
        INSERT INTO truerank.revision (board_id, event_uuid)
        SELECT DISTINCT p_board_id, truerank.event_uuid(o.event_id) FROM unnest(p_old) AS o
        WHERE o.event_id IS NOT NULL ORDER BY 2
        ON CONFLICT DO NOTHING;
        PERFORM FROM truerank.revision AS r
        JOIN (SELECT DISTINCT truerank.event_uuid(o.event_id) AS uuid FROM unnest(p_old) AS o) AS o
          ON r.board_id = p_board_id AND r.event_uuid = o.uuid
        ORDER BY r.event_uuid FOR UPDATE OF r;
    END IF;

    -- A later statement: the rows as they are under the lock.
    WITH came AS MATERIALIZED (
        SELECT (f.event_id, f.member, f.value, f.occurred_at, f.ties)::truerank.attached_fact
               AS fact, truerank.event_uuid(f.event_id) AS uuid, f.ord
        FROM unnest(p_new) WITH ORDINALITY AS f (event_id, member, value, occurred_at, ties, ord)
    ), gone AS MATERIALIZED (
        SELECT DISTINCT ON (uuid)
               (f.event_id, f.member, f.value, f.occurred_at, f.ties)::truerank.attached_fact
               AS fact, truerank.event_uuid(f.event_id) AS uuid, f.ord
        FROM unnest(p_old) WITH ORDINALITY AS f (event_id, member, value, occurred_at, ties, ord)
        WHERE f.event_id IS NOT NULL
        ORDER BY uuid, f.ord
    ), item AS (
        SELECT c.fact, c.uuid, c.ord, (g.fact).occurred_at AS was_at,
               CASE WHEN g.uuid IS NULL THEN 'submit' ELSE 'correct' END AS action
        FROM came AS c LEFT JOIN gone AS g ON g.uuid = c.uuid
        UNION ALL
        SELECT g.fact, g.uuid, coalesce(cardinality(p_new), 0) + g.ord, (g.fact).occurred_at,
               'void'
        FROM gone AS g WHERE NOT EXISTS (SELECT FROM came AS c WHERE c.uuid = g.uuid)
    )
    SELECT array_agg((i.ord, i.fact, i.uuid, i.action, coalesce(r.last, 0),
                      coalesce(r.withdrawn, false), NULL, i.was_at, NULL, NULL
                      )::truerank.attached_item ORDER BY i.ord)
    INTO v_item
    FROM item AS i
    LEFT JOIN truerank.revision AS r ON r.board_id = p_board_id AND r.event_uuid = i.uuid;
    RETURN v_item;
END
$$;
