-- Which projections are too old to be read, because somebody was taken out of sight since.

-- Changes that take somebody out of sight, and that no tick shows yet. Insert-only; the next tick
-- takes them in. grp -1: all groups.
CREATE TABLE truerank.privacy_change (
    grp smallint NOT NULL
);

-- The newest tick that first showed such a change; copies of the group below it are not read.
CREATE TABLE truerank.privacy (
    grp smallint PRIMARY KEY,
    tick bigint NOT NULL
) WITH (fillfactor = 50);

-- It is told by group now, and was never written by any release.
ALTER TABLE truerank.setting DROP COLUMN privacy_tick;

-- Members who are erased: what is to be removed, and in the end the proof that it was.
CREATE TABLE truerank.erasure (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    actor text NOT NULL,
    reason text NOT NULL,
    -- The ids of the person, and what stands for each of them from now on. The ids go in the end.
    names text[],
    stand_ins text[] NOT NULL,
    -- Transactions before this one were in progress when the erasure began: what they add goes too.
    began_xid xid8 NOT NULL,
    -- All transactions below it have ended: none is left that may know an id from before.
    known_from xid8,
    -- No row of the outbox after this transaction names what was removed.
    swept_xid xid8,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at timestamptz NOT NULL DEFAULT '-infinity',
    swept_at timestamptz,
    erased_at timestamptz,
    events bigint NOT NULL DEFAULT 0,
    -- SHA-256 over the board, position, value and time of each of the events, in this order.
    digest bytea,
    CHECK ((names IS NULL) = (erased_at IS NOT NULL))
);
CREATE INDEX erasure_open ON truerank.erasure (tried_at) WHERE erased_at IS NULL;

-- Groups whose copies hold nothing any more of who is erased.
CREATE TABLE truerank.erasure_group (
    erasure uuid NOT NULL REFERENCES truerank.erasure (id) ON DELETE CASCADE,
    grp smallint NOT NULL,
    PRIMARY KEY (erasure, grp)
);

-- Seasons of which the public is shown what they were at an instant.
CREATE TABLE truerank.freeze (
    -- 32 bits: part of the number of the ranking that is shown instead.
    id bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 4294967295) PRIMARY KEY,
    board_id integer NOT NULL,
    ranking bigint NOT NULL,
    season text COLLATE "C" NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at timestamptz NOT NULL,
    -- Whoever takes members away while the copy is made changes it: the copy is begun anew.
    ends bigint NOT NULL DEFAULT 0,
    -- What is shown is no newer. Null: the copy is yet to be made.
    frozen_at timestamptz,
    -- All transactions below it have ended: none is left that didn't see the copy.
    known_from xid8,
    -- Up to which member the copy is in the outbox, and whether all of it is.
    logged_to text COLLATE "C" NOT NULL DEFAULT '',
    logged boolean NOT NULL DEFAULT false,
    revealed_at timestamptz,
    -- Nothing is left of the copy.
    dropped_at timestamptz
);
CREATE UNIQUE INDEX freeze_of_ranking ON truerank.freeze (ranking) WHERE revealed_at IS NULL;
CREATE INDEX freeze_to_do ON truerank.freeze (id) WHERE dropped_at IS NULL;
CREATE INDEX freeze_board ON truerank.freeze (board_id, id);
