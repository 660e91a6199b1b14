-- The tables of Truerank. They are private: callers use the functions of this schema.
--
-- Every text column that takes part in an order is COLLATE "C", so that SQL, Redis, cursors and
-- exports agree on one order of bytes.

CREATE SCHEMA truerank;
REVOKE ALL ON SCHEMA truerank FROM PUBLIC;

-- One row: what this installation is.
CREATE TABLE truerank.setting (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    installation uuid NOT NULL DEFAULT gen_random_uuid(),
    groups smallint NOT NULL DEFAULT 64 CHECK (groups BETWEEN 1 AND 4096),
    -- A new epoch says that the source went backwards: versions of the old one mean nothing.
    epoch uuid NOT NULL DEFAULT gen_random_uuid(),
    -- A dump or logical copy carries tick rows into another transaction-id space; this tells.
    system_identifier bigint NOT NULL,
    -- No projection below this tick is served: a state that hides a member was set there.
    privacy_tick bigint NOT NULL DEFAULT 0
);
INSERT INTO truerank.setting (system_identifier)
SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c;

-- One row: where the ring of segments stands. Read by every command, changed once per turn.
CREATE TABLE truerank.ring (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    segment smallint NOT NULL DEFAULT 0 CHECK (segment BETWEEN 0 AND 3),
    -- Ticks below the floor may be gone; a cursor below it means rebuild.
    floor_tick bigint NOT NULL DEFAULT 0,
    turned_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO truerank.ring DEFAULT VALUES;

CREATE TABLE truerank.board (
    id integer GENERATED ALWAYS AS IDENTITY (MAXVALUE 134217727) PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE
        CHECK (char_length(key) BETWEEN 1 AND 100 AND key !~ '[[:cntrl:]/\\]'
               AND key NOT IN ('.', '..')),
    grp smallint NOT NULL,
    partitions smallint NOT NULL DEFAULT 1 CHECK (partitions = 1),
    zone text NOT NULL,
    decimals smallint NOT NULL DEFAULT 0 CHECK (decimals BETWEEN 0 AND 18),
    operator text NOT NULL CHECK (operator IN ('sum', 'best', 'latest')),
    descending boolean NOT NULL,
    seasons text[] NOT NULL CHECK (seasons <@ ARRAY['all', 'day', 'week', 'month', 'year']),
    has_custom_seasons boolean NOT NULL DEFAULT false,
    -- Up to four columns that decide between equal scores, compared with the score as one row.
    tie_names text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tie_names) <= 4),
    tie_descending boolean[] NOT NULL DEFAULT '{}',
    tie_min bigint[] NOT NULL DEFAULT '{}',
    tie_max bigint[] NOT NULL DEFAULT '{}',
    value_min bigint NOT NULL DEFAULT -9223372036854775808,
    value_max bigint NOT NULL DEFAULT 9223372036854775807,
    total_min bigint NOT NULL DEFAULT -9223372036854775808,
    total_max bigint NOT NULL DEFAULT 9223372036854775807,
    earliest_at timestamptz NOT NULL DEFAULT '1900-01-01 00:00:00+00'
        CHECK (isfinite(earliest_at) AND earliest_at >= '0002-01-01 00:00:00+00'),
    future_max interval NOT NULL DEFAULT '5 minutes'
        CHECK (future_max BETWEEN interval '0' AND interval '1 day'),
    accepting boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (value_min <= value_max AND total_min <= total_max),
    CHECK (cardinality(tie_descending) = cardinality(tie_names)
           AND cardinality(tie_min) = cardinality(tie_names)
           AND cardinality(tie_max) = cardinality(tie_names))
);

-- Facts about members that differ from the default: no row means active on every board.
CREATE TABLE truerank.member (
    id text COLLATE "C" PRIMARY KEY,
    state text NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'hidden', 'banned', 'deleted')),
    state_until timestamptz,
    state_version bigint NOT NULL DEFAULT 0,
    merged_into text COLLATE "C",
    display_name text,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX member_not_active ON truerank.member (id) WHERE state <> 'active';

-- A state on one board only; the stricter of the two wins.
CREATE TABLE truerank.member_board (
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    member text COLLATE "C" NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'hidden', 'banned', 'deleted')),
    state_until timestamptz,
    state_version bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (board_id, member)
);

-- What has an order. The id of a built-in season is computed from board and label, so a command
-- never inserts here; the rows of built-in seasons are made by the worker, for listing, and
-- where a state other than open must be kept.
CREATE TABLE truerank.ranking (
    id bigint PRIMARY KEY,
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    period text NOT NULL
        CHECK (period IN ('all', 'day', 'week', 'month', 'year', 'custom')),
    season text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'sealed', 'final')),
    cohort text COLLATE "C" NOT NULL DEFAULT '',
    kind text NOT NULL DEFAULT 'live' CHECK (kind IN ('live', 'frozen')),
    UNIQUE (board_id, season, cohort, kind),
    CHECK (starts_at < ends_at)
);
CREATE INDEX ranking_board ON truerank.ranking (board_id, starts_at);

CREATE SEQUENCE truerank.position CACHE 1;
CREATE SEQUENCE truerank.version CACHE 1;
CREATE SEQUENCE truerank.tick_id CACHE 1;
-- Numbers of rankings that are not computed: custom seasons.
CREATE SEQUENCE truerank.ranking_number CACHE 1;

-- Every score command, append-only. A void or an amendment is a row of its own that names its
-- target, so what was once accepted can always be read.
CREATE TABLE truerank.event (
    event_uuid uuid NOT NULL,
    board_id integer NOT NULL,
    kind "char" NOT NULL DEFAULT 's' CHECK (kind IN ('s', 'v', 'a')),
    occurred_given boolean NOT NULL,
    position bigint NOT NULL,
    value bigint NOT NULL,
    occurred_at timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    -- The transaction that wrote it: a duplicate answers with the first write's token.
    xid xid8 NOT NULL,
    member text COLLATE "C" NOT NULL,
    -- Null where the id is a UUID; else the exact text, beside the UUID made from its hash.
    event_text text COLLATE "C",
    ties bigint[],
    target uuid,
    metadata jsonb,
    PRIMARY KEY (board_id, event_uuid)
);
CREATE INDEX event_of_member
    ON truerank.event (board_id, member, occurred_at, position);
CREATE INDEX event_target ON truerank.event (board_id, target) WHERE target IS NOT NULL;

-- A member's absolute score in one ranking: a function of the set of its live events.
CREATE TABLE truerank.standing (
    ranking bigint NOT NULL,
    score bigint NOT NULL,
    version bigint NOT NULL,
    -- The event it rests on. For `latest` that is the last one, while the sort key holds the
    -- first of the unbroken run of equal rows that ends there.
    event_at timestamptz NOT NULL,
    event_position bigint NOT NULL,
    -- `sum`: an event other than zero counts. Until then the first event decides the instant.
    moved boolean NOT NULL,
    member text COLLATE "C" NOT NULL,
    sort_key bytea NOT NULL,
    ties bigint[],
    PRIMARY KEY (ranking, member)
) WITH (fillfactor = 80);
CREATE INDEX standing_order ON truerank.standing (ranking, sort_key, member);

-- What the public may see: a member that isn't active takes no place, and nobody else's.
CREATE VIEW truerank.visible_standing AS
SELECT s.* FROM truerank.standing AS s
WHERE NOT EXISTS (SELECT FROM truerank.member AS m
                  WHERE m.id = s.member AND m.state <> 'active')
  AND NOT EXISTS (SELECT FROM truerank.member_board AS m
                  WHERE m.board_id = s.ranking >> 36 AND m.member = s.member
                    AND m.state <> 'active');

-- What changed, in the order of nothing: read by the difference of two snapshots. Insert-only,
-- a ring of four segments that are truncated, never deleted from. op: p put, d drop, s state.
CREATE TABLE truerank.outbox (
    segment smallint NOT NULL,
    grp smallint NOT NULL,
    op "char" NOT NULL,
    ranking bigint NOT NULL,
    version bigint NOT NULL,
    xid xid8 NOT NULL,
    member text COLLATE "C" NOT NULL,
    sort_key bytea NOT NULL
) PARTITION BY LIST (segment);
CREATE TABLE truerank.outbox_0 PARTITION OF truerank.outbox FOR VALUES IN (0);
CREATE TABLE truerank.outbox_1 PARTITION OF truerank.outbox FOR VALUES IN (1);
CREATE TABLE truerank.outbox_2 PARTITION OF truerank.outbox FOR VALUES IN (2);
CREATE TABLE truerank.outbox_3 PARTITION OF truerank.outbox FOR VALUES IN (3);
CREATE INDEX outbox_xid ON truerank.outbox (xid);

-- A tick is a committed snapshot and a nonce that nobody else can have made.
CREATE TABLE truerank.tick (
    segment smallint NOT NULL,
    id bigint NOT NULL,
    nonce uuid NOT NULL,
    snapshot pg_snapshot NOT NULL,
    taken_at timestamptz NOT NULL
) PARTITION BY LIST (segment);
CREATE TABLE truerank.tick_0 PARTITION OF truerank.tick FOR VALUES IN (0);
CREATE TABLE truerank.tick_1 PARTITION OF truerank.tick FOR VALUES IN (1);
CREATE TABLE truerank.tick_2 PARTITION OF truerank.tick FOR VALUES IN (2);
CREATE TABLE truerank.tick_3 PARTITION OF truerank.tick FOR VALUES IN (3);
CREATE INDEX tick_by_id ON truerank.tick (id);

-- Who works on which group. Progress depends on it, safety never does.
CREATE TABLE truerank.worker (
    id uuid PRIMARY KEY,
    seen_at timestamptz NOT NULL
);
CREATE TABLE truerank.lease (
    grp smallint PRIMARY KEY,
    worker uuid,
    expires_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- What a command answers: one row per event and season, or one row without a season.
CREATE TYPE truerank.receipt AS (
    ord integer,        -- place in the caller's arrays, from 1
    outcome text,       -- applied, duplicate, conflict, refused
    code text,          -- why it was refused
    season text,
    score numeric,      -- absolute, in the board's unit; null: no standing
    version bigint,
    token xid8          -- the transaction that first wrote the event
);

-- A standing that a command changed, as it is now; version 0 until an inserted row has drawn its own.
CREATE TYPE truerank.changed AS (
    ranking bigint,
    member text,
    sort_key bytea,
    version bigint,
    score bigint
);

-- One season of a board, as a range of instants.
CREATE TYPE truerank.season AS (
    ranking bigint,
    period text,
    label text,
    starts_at timestamptz,
    ends_at timestamptz
);

-- A batch of events under way, as arrays in the caller's order.
CREATE TYPE truerank.prepared_events AS (
    received_at timestamptz,
    uuids uuid[],
    texts text[],                -- the id where it isn't a UUID, else null
    positions bigint[],
    at timestamptz[],
    "values" bigint[],            -- scaled by the board's decimals
    codes text[],                -- why refused, or null
    candidate_at timestamptz[]   -- the times of those that aren't refused so far
);

-- What became of them. outcomes, xids and first_at are null where all were new.
CREATE TYPE truerank.stored_events AS (
    xid xid8,
    stored_n integer,
    stored bigint[],             -- positions of the new ones, in no order
    outcomes text[],
    xids xid8[],
    first_at timestamptz[]
);

-- The changes of one ranking in a batch; see truerank.read_batch.
CREATE TYPE truerank.batch_part AS (
    grp smallint,
    ranking bigint,
    key_bytes integer,
    packed bytea[]
);

-- The complete copies of groups in Redis. Redis decides which one is live; the cursor here is
-- a copy for metrics and retention.
CREATE TABLE truerank.generation (
    id uuid PRIMARY KEY,
    grp smallint NOT NULL,
    epoch uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('warming', 'live', 'retired', 'dead')),
    cursor_tick bigint NOT NULL,
    cursor_snapshot pg_snapshot NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
CREATE INDEX generation_group ON truerank.generation (grp);

INSERT INTO truerank.lease (grp)
SELECT g FROM truerank.setting AS s, generate_series(0, s.groups - 1) AS g;
