-- queue_deliveries: keep for each receiver what it is to be told of, in the caller's transaction.
--
-- p_members and p_data: one of each for each thing that happened; a member may be null.
-- p_board_id null: it is of no board.
CREATE OR REPLACE FUNCTION truerank.queue_deliveries(
    p_kind text, p_board_id integer, p_members text[], p_data jsonb[]
) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO truerank.webhook_delivery (webhook, kind, member, data)
    SELECT w.id, p_kind, f.member, f.data
    FROM truerank.webhook AS w
    CROSS JOIN unnest(p_members, p_data) WITH ORDINALITY AS f (member, data, ord)
    WHERE p_kind = ANY (w.kinds) AND (w.board_id IS NULL OR p_board_id IS NULL
                                      OR w.board_id = p_board_id)
    ORDER BY f.ord, w.id
$$;
