-- carry_frozen: let a member that others are merged into be shown where it was not when a season was
-- frozen, by what the one that is no more was.
--
-- Where both have a place in the copy, that of p_into stays as it is, and p_from is out of sight.
CREATE OR REPLACE FUNCTION truerank.carry_frozen(p_from text, p_into text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_gone truerank.changed[];
    v_come truerank.changed[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT s.* FROM truerank.ranking AS r JOIN truerank.standing AS s ON s.ranking = r.id
        WHERE r.kind = 'frozen' AND s.member = p_from AND NOT EXISTS (
            SELECT FROM truerank.standing AS o WHERE o.ranking = r.id AND o.member = p_into)
        ORDER BY s.ranking FOR UPDATE OF s
    ), gone AS (
        DELETE FROM truerank.standing AS s USING held AS h
        WHERE s.ranking = h.ranking AND s.member = h.member
        RETURNING s.ranking, s.member, NULL::bytea, nextval('truerank.version'), NULL::bigint
    ), come AS (
        INSERT INTO truerank.standing
            (ranking, member, score, ties, version, event_at, event_position, moved, sort_key)
        SELECT h.ranking, p_into, h.score, h.ties, nextval('truerank.version'), h.event_at,
               h.event_position, h.moved, h.sort_key
        FROM held AS h ORDER BY h.ranking
        ON CONFLICT (ranking, member) DO NOTHING
        RETURNING ranking, member, sort_key, version, score
    )
    SELECT (SELECT array_agg((g.*)::truerank.changed) FROM gone AS g),
           (SELECT array_agg((c.*)::truerank.changed) FROM come AS c)
    INTO v_gone, v_come;
    PERFORM truerank.log_by_board(v_gone || v_come);
END
$$;
