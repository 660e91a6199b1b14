-- Rebuilds that are asked for, and copies that follow along after a switch.

-- former: it was live, and is brought forward until kept_until, so that there is a way back.
-- cause: why it was begun. rows: standings that its scan has brought in, of rows_about as estimated
-- when it was begun; checked: standings that were compared with the source before the switch.
ALTER TABLE truerank.generation
    DROP CONSTRAINT generation_state_check,
    ADD CONSTRAINT generation_state_check
        CHECK (state IN ('warming', 'live', 'former', 'retired', 'dead')) NOT VALID,
    ADD COLUMN cause text NOT NULL DEFAULT 'lost',
    ADD COLUMN rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN rows_about bigint NOT NULL DEFAULT 0,
    ADD COLUMN checked bigint NOT NULL DEFAULT 0,
    ADD COLUMN kept_until timestamptz;

-- What somebody, or the schedule, asked for: a new copy of a group, or the way back to the last one.
-- The worker that holds the group's lease carries it out.
CREATE TABLE truerank.rebuild (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    grp smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('rebuild', 'back')),
    cause text NOT NULL CHECK (cause IN ('asked', 'schedule')),
    throttled boolean NOT NULL,
    keep_ms integer NOT NULL,  -- for how long the copy before follows along after the switch
    asked_by text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries integer NOT NULL DEFAULT 0,
    generation uuid,  -- the copy that readers are to read
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('switched', 'failed')),
    code text,
    message text
);
CREATE UNIQUE INDEX rebuild_open ON truerank.rebuild (grp) WHERE ended_at IS NULL;
CREATE INDEX rebuild_ended ON truerank.rebuild (ended_at);
