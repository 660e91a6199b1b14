-- How far the seasons of an added period are computed.

ALTER TABLE truerank.board
    -- Members looked at since the period was added.
    ADD COLUMN filled_members bigint NOT NULL DEFAULT 0,
    -- How many had events when somebody counted them; null: nobody has.
    ADD COLUMN filling_members bigint;
