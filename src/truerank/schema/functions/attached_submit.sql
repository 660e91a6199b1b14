-- attached_submit: submit the facts that have no outcome yet, each as the revision it is.
--
-- After a withdrawn revision comes a number that is free; else the newest one is meant,
-- and the same content is a duplicate. A row without a time keeps that of the event it stands for.
-- What a changed row says now corrects what it said before: in seasons in which that is it is taken
-- like any correction, whether they are sealed or over.
-- Returns: the items with outcome and code.
CREATE OR REPLACE FUNCTION truerank.attached_submit(
    p_attachment truerank.attachment, p_key text, p_item truerank.attached_item[]
) RETURNS truerank.attached_item[]
LANGUAGE plpgsql AS $$
DECLARE
    v_board truerank.board := truerank.lock_board(p_key);
    v_runs truerank.season_run[];
    v_item truerank.attached_item[];
    v_sent truerank.attached_item[];
    v_outcomes text[] := '{}';
    v_codes text[] := '{}';
BEGIN
    SELECT array_agg((i.ord, i.fact, i.uuid, i.action, i.last, i.withdrawn,
            CASE WHEN NOT i.withdrawn THEN i.last
                 ELSE truerank.free_revision(p_attachment.board_id, (i.fact).event_id, i.last) END,
            CASE
                -- No time where one is promised is refused, not taken as now.
                WHEN p_attachment.occurred_at IS NOT NULL
                    THEN coalesce((i.fact).occurred_at, 'infinity')
                WHEN (i.fact).occurred_at IS NULL
                     AND (i.action = 'correct' OR NOT i.withdrawn AND t.occurred_given)
                    THEN t.occurred_at
                ELSE (i.fact).occurred_at END,
            i.outcome, i.code)::truerank.attached_item ORDER BY i.ord)
    INTO v_item
    FROM unnest(p_item) AS i
    LEFT JOIN truerank.event AS t
      ON p_attachment.occurred_at IS NULL AND t.board_id = p_attachment.board_id
     AND t.event_uuid = truerank.event_uuid(
             truerank.attached_id((i.fact).event_id, i.last))
    WHERE i.outcome IS NULL;
    IF EXISTS (SELECT FROM unnest(v_item) AS i WHERE i.action = 'correct') THEN
        -- Whatever they are now: a season may be sealed before its state is read.
        v_runs := truerank.season_runs(ARRAY(
            SELECT s FROM truerank.seasons_of(v_board, ARRAY(
                SELECT e.occurred_at FROM unnest(v_item) AS i
                JOIN truerank.event AS e ON e.board_id = v_board.id
                 AND e.event_uuid = truerank.event_uuid(
                         truerank.attached_id((i.fact).event_id, i.last))
                WHERE i.action = 'correct')) AS s));
        INSERT INTO truerank.replacement (board_id, event_uuid, ranking)
        SELECT DISTINCT v_board.id, truerank.event_uuid(
                   truerank.attached_id((i.fact).event_id, i.next)), s.ranking
        FROM unnest(v_item) AS i
        JOIN truerank.event AS e ON e.board_id = v_board.id
         AND e.event_uuid = truerank.event_uuid(
                 truerank.attached_id((i.fact).event_id, i.last))
        CROSS JOIN LATERAL truerank.seasons_at(v_runs, e.occurred_at) AS s
        WHERE i.action = 'correct' AND i.withdrawn
        ON CONFLICT DO NOTHING;
    END IF;

    -- A statement may change more rows than a board takes events in a call.
    FOR v_from IN 1..coalesce(cardinality(v_item), 0) BY 100000 LOOP
        v_sent := v_item[v_from : v_from + 99999];
        SELECT v_outcomes || array_agg(r.outcome ORDER BY r.ord),
               v_codes || array_agg(r.code ORDER BY r.ord)
        INTO v_outcomes, v_codes
        FROM (
            SELECT DISTINCT ON (s.ord) s.ord, s.outcome, s.code
            FROM truerank.submit_scores(
                p_key,
                ARRAY(SELECT truerank.attached_id((i.fact).event_id, i.next)
                      FROM unnest(v_sent) AS i ORDER BY i.ord),
                ARRAY(SELECT (i.fact).member FROM unnest(v_sent) AS i ORDER BY i.ord),
                -- Beyond any range is refused; scaled, it could leave what a numeric holds.
                ARRAY(SELECT CASE WHEN abs((i.fact).value) > 1e40 THEN 1e40
                                  ELSE (i.fact).value END
                      FROM unnest(v_sent) AS i ORDER BY i.ord),
                ARRAY(SELECT i.given FROM unnest(v_sent) AS i ORDER BY i.ord),
                CASE WHEN cardinality(p_attachment.ties) > 0 THEN
                    ARRAY(SELECT t.tie FROM unnest(v_sent) AS i
                          CROSS JOIN LATERAL unnest((i.fact).ties) WITH ORDINALITY AS t (tie, ord)
                          ORDER BY i.ord, t.ord) END,
                NULL, NULL, p_attachment.source) AS s
            ORDER BY s.ord
        ) AS r;
    END LOOP;
    IF v_runs IS NOT NULL THEN
        DELETE FROM truerank.replacement AS c
        WHERE c.board_id = v_board.id AND c.event_uuid = ANY (ARRAY(
            SELECT truerank.event_uuid(truerank.attached_id((i.fact).event_id, i.next))
            FROM unnest(v_item) AS i WHERE i.action = 'correct'));
    END IF;

    WITH done AS MATERIALIZED (
        SELECT i.ord, i.uuid, i.next, i.withdrawn, r.outcome,
               CASE WHEN r.outcome = 'conflict' THEN 'event_conflict' ELSE r.code END AS code
        FROM (SELECT i.*, row_number() OVER (ORDER BY i.ord) AS place
              FROM unnest(v_item) AS i) AS i
        JOIN unnest(v_outcomes, v_codes) WITH ORDINALITY AS r (outcome, code, ord)
          ON r.ord = i.place
    ), noted AS (
        INSERT INTO truerank.revision AS r (board_id, event_uuid, last, withdrawn)
        SELECT p_attachment.board_id, d.uuid, max(d.next), false FROM done AS d
        WHERE d.withdrawn AND d.outcome IN ('applied', 'duplicate')
        GROUP BY d.uuid ORDER BY d.uuid
        ON CONFLICT (board_id, event_uuid) DO UPDATE SET
            last = excluded.last, withdrawn = false
    )
    SELECT array_agg((i.ord, i.fact, i.uuid, i.action, i.last, i.withdrawn, d.next, i.given,
                      coalesce(i.outcome, d.outcome), coalesce(i.code, d.code)
                      )::truerank.attached_item ORDER BY i.ord)
    INTO v_item
    FROM unnest(p_item) AS i LEFT JOIN done AS d ON d.ord = i.ord;
    RETURN v_item;
END
$$;
