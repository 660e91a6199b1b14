-- need_latest_seal: refuse a transaction whose snapshot is older than the last seal of a season.
--
-- For writers above READ COMMITTED, after the board's lock and their own number: from the snapshot
-- they would read that the season is open. A row lock would tell as well, but while writers always
-- hold it nobody could ever seal.
-- Raises:  serialization_failure (40001), also where the seal was of another board.
CREATE OR REPLACE FUNCTION truerank.need_latest_seal() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_seal xid8 := (SELECT s.last_value::text::xid8 FROM truerank.last_seal AS s);
BEGIN
    -- Seals come one after the other: who sees the last one sees all before.
    IF pg_visible_in_snapshot(v_seal, pg_current_snapshot()) THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM pg_xact_status(v_seal);
    EXCEPTION WHEN invalid_parameter_value THEN
        RETURN;  -- a number that is yet to come is another cluster's, from which a dump brought it
    END;
    RAISE serialization_failure USING MESSAGE = 'a season was closed meanwhile; retry';
END
$$;
