-- outbox_of: the outbox rows of the transactions that a snapshot saw running, by the index.
--
-- Mostly there are none to look up. With = ANY the planner would now and then read the whole outbox
-- for that: where few transactions wrote it all, it hopes to meet one of them soon. Of a range it
-- expects little, and OFFSET keeps it from joining the tables in another way.
CREATE OR REPLACE FUNCTION truerank.outbox_of(p_since pg_snapshot) RETURNS SETOF truerank.outbox
LANGUAGE sql STABLE AS $$
    SELECT o.*
    FROM pg_snapshot_xip(p_since) AS x
    CROSS JOIN LATERAL (
        SELECT b.* FROM truerank.outbox AS b WHERE b.xid BETWEEN x AND x OFFSET 0
    ) AS o
$$;
