-- need_read_committed: refuse a transaction whose snapshot is older than its statements.
--
-- For what takes a lock and then must see all that was committed before it had the lock.
-- Raises:  active_sql_transaction (25001) above READ COMMITTED.
CREATE OR REPLACE FUNCTION truerank.need_read_committed() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE active_sql_transaction USING MESSAGE = 'call this at READ COMMITTED';
    END IF;
END
$$;
