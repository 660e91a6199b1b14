-- Tables of others whose rows are the events of a board.

-- Which table feeds which board, and how a row is read. A row stays after its table is detached:
-- what was parked names it.
CREATE TABLE truerank.attachment (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    board_id integer NOT NULL REFERENCES truerank.board (id),
    relation regclass NOT NULL,
    -- Kept with every event of the table: 'attach:' and its name when it was attached.
    source text COLLATE "C" NOT NULL,
    -- Goes before the id, so that two tables with numbers of their own don't meet on one board.
    prefix text COLLATE "C" NOT NULL DEFAULT '',
    -- Names of columns. Numbers of columns change in a dump; a renamed column must be told here.
    event_id name NOT NULL,
    member name NOT NULL,
    value name,
    value_fixed numeric,
    occurred_at name,
    -- Where occurred_at has no zone of its own.
    zone text,
    ties name[] NOT NULL DEFAULT '{}',
    -- SQL on the columns of a row; a row for which it isn't true is no event.
    condition text,
    on_update text NOT NULL CHECK (on_update IN ('correct', 'ignore', 'refuse')),
    on_delete text NOT NULL CHECK (on_delete IN ('void', 'ignore', 'refuse')),
    on_refusal text NOT NULL CHECK (on_refusal IN ('park', 'raise')),
    -- Rows up to this id were taken in; null: none yet.
    backfill_after text,
    backfill_rows bigint NOT NULL DEFAULT 0,
    backfill_applied bigint NOT NULL DEFAULT 0,
    backfill_duplicate bigint NOT NULL DEFAULT 0,
    backfill_parked bigint NOT NULL DEFAULT 0,
    backfill_done_at timestamptz,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    detached_at timestamptz,
    CHECK ((value IS NULL) <> (value_fixed IS NULL)),
    CHECK (zone IS NULL OR occurred_at IS NOT NULL)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX attachment_of_table
    ON truerank.attachment (relation, board_id, prefix) WHERE detached_at IS NULL;

-- What became of an event id whose row was changed, removed or came back: the events that stand
-- for it are id, id~1, id~2 ... No row: the id itself is all there is.
CREATE TABLE truerank.revision (
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    event_uuid uuid NOT NULL,
    last integer NOT NULL DEFAULT 0,
    -- The last one was voided because its row changed or went, not by a person.
    withdrawn boolean NOT NULL DEFAULT false,
    PRIMARY KEY (board_id, event_uuid)
);

-- Rows that a board did not take, while their transaction committed.
CREATE TABLE truerank.parked (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attachment_id integer NOT NULL REFERENCES truerank.attachment (id),
    -- What is to be done: submit the row, submit it in place of what it said before, or void it.
    action text NOT NULL CHECK (action IN ('submit', 'correct', 'void')),
    event_uuid uuid,
    event_id text COLLATE "C",
    member text COLLATE "C",
    value numeric,
    occurred_at timestamptz,
    ties bigint[],
    code text NOT NULL,
    message text NOT NULL,
    parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries integer NOT NULL DEFAULT 1,
    tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz,
    -- taken in by a retry; superseded: the row changed or went since; dismissed by a person.
    done text CHECK (done IN ('taken', 'superseded', 'dismissed')),
    CHECK ((done IS NULL) = (done_at IS NULL))
);
CREATE UNIQUE INDEX parked_open
    ON truerank.parked (attachment_id, event_uuid) WHERE done_at IS NULL;
CREATE INDEX parked_attachment ON truerank.parked (attachment_id, id);

-- A row of an attached table as an event.
CREATE TYPE truerank.attached_fact AS (
    event_id text,
    member text,
    value numeric,
    occurred_at timestamptz,
    ties bigint[]
);

-- The same on its way to the board: under which id, instead of what, and what became of it.
CREATE TYPE truerank.attached_item AS (
    ord integer,
    fact truerank.attached_fact,
    uuid uuid,          -- of the fact's own id
    action text,        -- submit, correct or void
    last integer,       -- the newest revision there is
    withdrawn boolean,  -- and whether it was voided because its row changed or went
    next integer,       -- the revision to be submitted
    given timestamptz,  -- the time to be submitted
    outcome text,
    code text
);
