-- attachments: the tables that feed boards, how far each is, and whether its triggers are whole.
--
-- state: attached; incomplete where uncovered names tables whose triggers are missing or disabled
-- (a partition that came later: attach again); gone where the table was dropped; detached.
-- rows_estimate is the planner's, null where it has none.
CREATE OR REPLACE FUNCTION truerank.attachments(p_attachment integer DEFAULT NULL)
RETURNS TABLE (
    id integer, board text, relation text, source text, prefix text, event_id text, member text,
    value text, value_fixed text, occurred_at text, zone text, ties text[], condition text,
    on_update text, on_delete text, on_refusal text, state text, uncovered text[],
    rows_estimate bigint, backfill_rows bigint, backfill_applied bigint,
    backfill_duplicate bigint, backfill_parked bigint, backfill_done_at timestamptz,
    parked_open bigint, made_at timestamptz, detached_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.id, b.key, coalesce(t.name, a.source), a.source, a.prefix, a.event_id, a.member,
           a.value, a.value_fixed::text, a.occurred_at, a.zone, a.ties::text[], a.condition,
           a.on_update, a.on_delete, a.on_refusal,
           CASE WHEN a.detached_at IS NOT NULL THEN 'detached'
                WHEN t.name IS NULL THEN 'gone'
                WHEN cardinality(t.uncovered) > 0 THEN 'incomplete' ELSE 'attached' END,
           t.uncovered, t.rows_estimate, a.backfill_rows, a.backfill_applied,
           a.backfill_duplicate, a.backfill_parked, a.backfill_done_at,
           (SELECT count(*) FROM truerank.parked AS p
            WHERE p.attachment_id = a.id AND p.done_at IS NULL),
           a.made_at, a.detached_at
    FROM truerank.attachment AS a
    JOIN truerank.board AS b ON b.id = a.board_id
    CROSS JOIN LATERAL (
        SELECT min(c.oid::regclass::text) FILTER (WHERE c.oid = a.relation) AS name,
               nullif(sum(c.reltuples) FILTER (WHERE c.relkind = 'r' AND c.reltuples >= 0),
                      NULL)::bigint AS rows_estimate,
               coalesce(array_agg(c.oid::regclass::text) FILTER (WHERE 4 > (
                   SELECT count(*) FROM pg_trigger AS g
                   WHERE g.tgrelid = c.oid AND g.tgenabled IN ('O', 'A')
                     AND g.tgname ~ format('^truerank_%s_', a.id))), '{}') AS uncovered
        FROM truerank.attached_tables(a) AS r JOIN pg_class AS c ON c.oid = r
    ) AS t
    WHERE p_attachment IS NULL OR a.id = p_attachment
    ORDER BY a.id
$$;
