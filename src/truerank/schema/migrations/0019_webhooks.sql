-- Webhooks: who is told of what, and what is on its way to whom.

-- Receivers, and what each is told of.
CREATE TABLE truerank.webhook (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE CHECK (char_length(name) BETWEEN 1 AND 100),
    url text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2000),
    kinds text[] NOT NULL CHECK (cardinality(kinds) > 0 AND kinds <@ ARRAY[
        'award.given', 'award.withdrawn', 'season.final', 'season.revised', 'member.erased',
        'event.voided']),
    -- Null: all boards. What is of no board is told in any case.
    board_id integer,
    -- Nothing is sent to one that is disabled; what happens is kept for it all the same.
    enabled boolean NOT NULL DEFAULT true,
    -- Why it was disabled, where nobody asked for it.
    disabled_for text,
    secret bytea NOT NULL CHECK (length(secret) = 32),
    -- Signed with as well, until then.
    former_secret bytea CHECK (length(former_secret) = 32),
    former_until timestamptz,
    -- Failures in a row, and until when it is left in peace.
    failures integer NOT NULL DEFAULT 0,
    paused_until timestamptz NOT NULL DEFAULT '-infinity',
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((former_secret IS NULL) = (former_until IS NULL))
);

-- One row for each receiver of each thing that happened, written in the same transaction. No foreign
-- key: nobody who settles a season or voids an event waits for whoever changes a receiver.
CREATE TABLE truerank.webhook_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook integer NOT NULL,
    -- The same in each attempt.
    key uuid NOT NULL DEFAULT gen_random_uuid(),
    kind text NOT NULL,
    -- Apart from the rest, so that an erasure finds it.
    member text COLLATE "C",
    data jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'parked', 'delivered', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    attempted_at timestamptz,
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Under way, by whoever holds the lease; until then nobody else sends it.
    lease uuid,
    leased_until timestamptz,
    -- How the last attempt ended: a status of HTTP, or a word. Never what a receiver wrote.
    outcome text,
    ended_at timestamptz,
    CHECK ((lease IS NULL) = (leased_until IS NULL))
-- Each attempt leaves two dead rows, which whoever looks for what is due steps over.
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX webhook_delivery_listed ON truerank.webhook_delivery (webhook, id);
CREATE INDEX webhook_delivery_due ON truerank.webhook_delivery (webhook, due_at)
    WHERE state = 'waiting';
CREATE INDEX webhook_delivery_leased ON truerank.webhook_delivery (webhook)
    WHERE lease IS NOT NULL;
CREATE INDEX webhook_delivery_parked ON truerank.webhook_delivery (webhook)
    WHERE state = 'parked';
CREATE INDEX webhook_delivery_ended ON truerank.webhook_delivery (ended_at)
    WHERE state IN ('delivered', 'cancelled');
CREATE INDEX webhook_delivery_member ON truerank.webhook_delivery (member)
    WHERE member IS NOT NULL;
