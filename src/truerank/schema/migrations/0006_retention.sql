-- History that ends, and lives of the server.

-- Events that occurred before this are forgotten or about to be. It only ever rises, whatever
-- becomes of the board's retention: an id that is forgotten must not be taken again.
ALTER TABLE truerank.board ADD COLUMN history_from timestamptz NOT NULL DEFAULT '-infinity';

-- f: a forgotten event of which only the id is left. Its caller gave no time, so a repeat would
-- come with a time of today, which alone would not tell that it is one.
ALTER TABLE truerank.event
    DROP CONSTRAINT event_kind_check,
    -- All that is there fulfils what was dropped: a scan would only stop the writers.
    ADD CONSTRAINT event_kind_check CHECK (kind IN ('s', 'v', 'a', 'f')) NOT VALID;

-- What the forgotten events of a member come to in one ranking that is still counted from events:
-- a recompute begins here. All of them come before every event that is kept, so this is the fold
-- of a prefix of the member's history.
CREATE TABLE truerank.opening (
    ranking bigint NOT NULL,
    member text COLLATE "C" NOT NULL,
    events bigint NOT NULL,
    score bigint NOT NULL,
    ties bigint[],
    event_at timestamptz NOT NULL,
    event_position bigint NOT NULL,
    moved boolean NOT NULL,
    -- `latest`: the first of the unbroken run of equal rows that ends with the event above.
    reached_at timestamptz NOT NULL,
    reached_position bigint NOT NULL,
    PRIMARY KEY (ranking, member)
);

-- Where the forgetting of a board's history stands: one walk through its members per horizon.
CREATE TABLE truerank.pruning (
    board_id integer PRIMARY KEY REFERENCES truerank.board (id) ON DELETE CASCADE,
    -- Nothing is removed while a transaction before this one is open: it may know the old horizon.
    barrier xid8,
    after_member text COLLATE "C" NOT NULL DEFAULT '',
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    removed bigint NOT NULL DEFAULT 0
);

-- Epochs that this source has left behind: a copy of one of them is old, a copy of an epoch that
-- is neither here nor the present one was made by a source that had gone on without this one.
CREATE TABLE truerank.past_epoch (
    epoch uuid PRIMARY KEY,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text NOT NULL
);

-- The lives of the server (its timeline and start) in which a tick of this epoch was found again.
-- Transactions before known_to are in the history that the next life went on from.
CREATE TABLE truerank.incarnation (
    epoch uuid NOT NULL,
    id text NOT NULL,
    known_to xid8,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (epoch, id)
);
