-- need_snapshot: refuse a transaction whose statements don't all read one snapshot.
--
-- Raises:  active_sql_transaction (25001) below REPEATABLE READ.
CREATE OR REPLACE FUNCTION truerank.need_snapshot() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN
        RAISE active_sql_transaction USING MESSAGE = 'call this at REPEATABLE READ';
    END IF;
END
$$;
