-- settled_slice: places of a settlement from one to before another, counted from 0, as read_page has
-- them: sort key and member in one byte string. Who isn't to be seen today is called by a stand-in.
--
-- better: how many places (p_dense: different scores) are better than the first.
CREATE OR REPLACE FUNCTION truerank.settled_slice(
    p_ranking bigint, p_revision integer, p_from bigint, p_until bigint, p_dense boolean,
    OUT rows bytea[], OUT better bigint
)
LANGUAGE sql STABLE AS $$
    SELECT array_agg(r.sort_key || convert_to(
               CASE WHEN r.left_at IS NULL AND NOT EXISTS (
                        SELECT FROM truerank.member_state AS s
                        WHERE s.member = r.member AND s.board_id IN (0, p_ranking >> 36)
                          AND truerank.state_at(s, statement_timestamp())
                              IN ('hidden', 'banned', 'merged'))
                    THEN r.member ELSE encode(r.stand_in, 'hex') END, 'UTF8') ORDER BY r.ordinal),
           min(CASE WHEN p_dense THEN r.dense ELSE r.competition END) - 1
    FROM truerank.settlement_row AS r
    WHERE r.ranking = p_ranking AND r.revision = p_revision
      AND r.ordinal > p_from AND r.ordinal <= p_until
$$;
