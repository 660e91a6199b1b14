-- Which seasons take events when they are over, and what a sealed one takes.

ALTER TABLE truerank.ranking
    -- Of custom seasons: when they were made. Null: there was the season when there was the board.
    ADD COLUMN made_at timestamptz;

-- Events that stand in the place of others, and the rankings in which those are: rows of attached
-- tables that changed. Written and removed by the one transaction that submits them, so nobody else
-- ever sees a row.
CREATE TABLE truerank.replacement (
    board_id integer NOT NULL,
    event_uuid uuid NOT NULL,
    ranking bigint NOT NULL,
    PRIMARY KEY (board_id, event_uuid, ranking)
);
