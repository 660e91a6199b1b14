-- attached_tables: an attached table and its partitions of every level, the table first; none
-- where it is gone.
CREATE OR REPLACE FUNCTION truerank.attached_tables(p_attachment truerank.attachment)
RETURNS SETOF regclass
LANGUAGE sql STABLE AS $$
    SELECT (p_attachment).relation FROM pg_class AS c WHERE c.oid = (p_attachment).relation
    UNION ALL
    SELECT p.relid FROM pg_partition_tree((p_attachment).relation) AS p WHERE p.level > 0
$$;
