-- queue_settlement: keep for receivers that a season was settled or revised, and what it gave.
CREATE OR REPLACE FUNCTION truerank.queue_settlement(
    p_board truerank.board, p_season truerank.season, p_revision integer
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM truerank.webhook AS w
                   WHERE w.board_id IS NULL OR w.board_id = p_board.id) THEN
        RETURN;
    END IF;
    PERFORM truerank.queue_deliveries(
        CASE WHEN p_revision = 1 THEN 'season.final' ELSE 'season.revised' END,
        p_board.id, ARRAY[NULL::text], ARRAY[jsonb_build_object(
            'board', p_board.key, 'season', p_season.label, 'period', p_season.period,
            'starts_at', truerank.instant_text(p_season.starts_at),
            'ends_at', truerank.instant_text(p_season.ends_at),
            'revision', s.revision, 'settled_at', truerank.instant_text(s.settled_at),
            'population', s.population, 'changed', s.changed,
            'total', (s.total * ('1e-' || p_board.decimals)::numeric)::text,
            'digest', encode(s.digest, 'hex'))])
    FROM truerank.settlement AS s
    WHERE s.ranking = p_season.ranking AND s.revision = p_revision;

    INSERT INTO truerank.webhook_delivery (webhook, kind, member, data)
    SELECT w.id, k.kind, a.member, jsonb_build_object(
        'award', a.id::text, 'change', a.change::text, 'board', p_board.key,
        'season', p_season.label, 'rule', r.name, 'rank', a.rank,
        'score', truerank.in_units(a.score, p_board.decimals)::text, 'revision', a.revision)
    FROM truerank.award AS a
    JOIN truerank.award_rule AS r ON r.id = a.rule_id
    CROSS JOIN LATERAL (SELECT 'award.' || a.state AS kind) AS k
    JOIN truerank.webhook AS w
      ON k.kind = ANY (w.kinds) AND (w.board_id IS NULL OR w.board_id = p_board.id)
    WHERE a.ranking = p_season.ranking AND a.revision = p_revision
    ORDER BY a.change, w.id;
END
$$;
