-- Corrections, rules and audit of the write side.

-- Where an event came from: an attachment, an import, a service. Null: the caller said nothing.
ALTER TABLE truerank.event ADD COLUMN source text COLLATE "C";

-- An event is void once. Its void has an id that nobody can guess, and so nobody can take.
CREATE UNIQUE INDEX event_void ON truerank.event (board_id, target) WHERE kind = 'v';

ALTER TABLE truerank.board
    ADD COLUMN latest_at timestamptz NOT NULL DEFAULT 'infinity',
    ADD COLUMN late_grace interval CHECK (late_grace >= interval '0'),
    ADD COLUMN retention interval CHECK (retention >= interval '1 day'),
    ADD COLUMN rate_max integer CHECK (rate_max > 0),
    -- A deleted board's key is free again; its rows go in slices.
    ADD COLUMN deleted_at timestamptz;
ALTER TABLE truerank.board DROP CONSTRAINT board_key_key;
CREATE UNIQUE INDEX board_key ON truerank.board (key) WHERE deleted_at IS NULL;

-- Events accepted per member and minute, on boards that limit them. Rows of past minutes are
-- swept by whoever comes by; after a crash of the server the counts begin anew.
CREATE UNLOGGED TABLE truerank.rate (
    board_id integer NOT NULL,
    member text COLLATE "C" NOT NULL,
    minute timestamptz NOT NULL,
    events integer NOT NULL,
    PRIMARY KEY (board_id, member, minute)
) WITH (fillfactor = 50);

-- Who changed what, when and why. Append-only.
CREATE TABLE truerank.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    board_id integer,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_board ON truerank.audit (board_id, id);

-- A correction under way: an event to void or amend, and what became of it.
CREATE TYPE truerank.correction AS (
    ord integer,
    uuid uuid,
    text text,
    target uuid,
    event_id text,
    member text,
    at timestamptz,
    value bigint,
    ties bigint[],
    "position" bigint,
    outcome text,
    code text,
    xid xid8
);
