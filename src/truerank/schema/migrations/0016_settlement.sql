-- Seasons that close, and what they came to.

ALTER TABLE truerank.board
    -- Between the end of a season's grace and its settlement: time to look at the result.
    ADD COLUMN hold interval NOT NULL DEFAULT '0'
        CHECK (hold BETWEEN interval '0' AND interval '366 days'),
    ADD COLUMN auto_close boolean NOT NULL DEFAULT false,
    -- Seasons that ended before it was switched on are left to people.
    ADD COLUMN auto_close_from timestamptz,
    -- Nothing of the board is due before this. Null: look.
    ADD COLUMN close_next_at timestamptz,
    -- Seasons of these periods are computed from the history just now: nobody reads them yet.
    ADD COLUMN filling text[] NOT NULL DEFAULT '{}',
    -- A transaction that began after the period was added: writers with later numbers know of it.
    ADD COLUMN filling_xid xid8,
    -- How far that has come.
    ADD COLUMN filled_to text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX board_to_fill ON truerank.board (key) WHERE filling <> '{}';
CREATE INDEX board_to_close ON truerank.board (close_next_at NULLS FIRST)
    WHERE auto_close AND deleted_at IS NULL;

ALTER TABLE truerank.ranking
    ADD COLUMN sealed_at timestamptz,
    -- A transaction that began after the seal: writers with later numbers have read of it.
    ADD COLUMN barrier_xid xid8,
    -- When no writer was left that could have begun before the seal. Whoever sees it in a snapshot
    -- sees all that those writers did.
    ADD COLUMN barrier_at timestamptz,
    ADD COLUMN hold_until timestamptz,
    ADD COLUMN settled_at timestamptz,
    -- Of the newest settlement.
    ADD COLUMN revision integer,
    -- Opened again by a person: it isn't closed by itself.
    ADD COLUMN kept_open boolean NOT NULL DEFAULT false;
CREATE INDEX ranking_sealed ON truerank.ranking (board_id) WHERE state = 'sealed';

-- The transaction that last sealed a season. A sequence, so that a writer whose snapshot is older
-- sees it all the same.
CREATE SEQUENCE truerank.last_seal CACHE 1;

-- What a season came to: never changed, a correction is another revision.
CREATE TABLE truerank.settlement (
    ranking bigint NOT NULL,
    revision integer NOT NULL CHECK (revision >= 1),
    settled_at timestamptz NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    -- Corrections with positions up to this one count in it.
    corrected_to bigint NOT NULL,
    population bigint NOT NULL,
    -- Different rows of score and tie-breaks: the last dense rank.
    different bigint NOT NULL,
    -- Of all scores, in the last place.
    total numeric NOT NULL,
    -- Members in other places, or with other scores, than in the revision before; also those who
    -- came or went.
    changed bigint NOT NULL,
    -- See truerank.settlement_digest.
    digest bytea NOT NULL CHECK (length(digest) = 32),
    PRIMARY KEY (ranking, revision)
);

-- One row per place. The digest names nobody but by the stand-in, which is the same in all
-- revisions: an erased member's id is replaced here and in its events by one and the same other
-- text, and the digest stays.
CREATE TABLE truerank.settlement_row (
    ranking bigint NOT NULL,
    revision integer NOT NULL,
    ordinal bigint NOT NULL,
    competition bigint NOT NULL,
    dense bigint NOT NULL,
    score bigint NOT NULL,
    stand_in bytea NOT NULL CHECK (length(stand_in) = 16),
    -- Deleted since: the place stays, the id isn't shown.
    left_at timestamptz,
    member text COLLATE "C" NOT NULL,
    sort_key bytea NOT NULL,
    ties bigint[],
    PRIMARY KEY (ranking, revision, ordinal),
    UNIQUE (ranking, revision, member)
);

-- Who had a score, and no place, and why: hidden, banned or merged then, or deleted before.
CREATE TABLE truerank.settlement_excluded (
    ranking bigint NOT NULL,
    revision integer NOT NULL,
    member text COLLATE "C" NOT NULL,
    why text NOT NULL CHECK (why IN ('hidden', 'banned', 'merged', 'deleted')),
    -- Null where the events had ended.
    score bigint,
    PRIMARY KEY (ranking, revision, member)
);

-- For whom events of other ids counted then. Ids without a row counted for themselves.
CREATE TABLE truerank.settlement_name (
    ranking bigint NOT NULL,
    revision integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    member text COLLATE "C" NOT NULL,
    PRIMARY KEY (ranking, revision, name)
);

-- Who gets what of a board's seasons of one period, once they are settled. Never changed: a rule is
-- dropped, and another one made.
CREATE TABLE truerank.award_rule (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    period text NOT NULL CHECK (period IN ('all', 'day', 'week', 'month', 'year', 'custom')),
    name text COLLATE "C" NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
    -- ranks: from one to another in a numbering. percent: the best so many percent. score: as good
    -- as this, in the last place.
    kind text NOT NULL CHECK (kind IN ('ranks', 'percent', 'score')),
    numbering text NOT NULL CHECK (numbering IN ('ordinal', 'competition', 'dense')),
    rank_from bigint CHECK (rank_from >= 1),
    rank_to bigint CHECK (rank_to >= rank_from),
    percent numeric CHECK (percent > 0 AND percent <= 100),
    score bigint,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_at timestamptz,
    CHECK (CASE kind WHEN 'ranks' THEN rank_from IS NOT NULL AND rank_to IS NOT NULL
                     WHEN 'percent' THEN percent IS NOT NULL ELSE score IS NOT NULL END)
);
CREATE UNIQUE INDEX award_rule_name ON truerank.award_rule (board_id, period, name)
    WHERE dropped_at IS NULL;

CREATE SEQUENCE truerank.award_change CACHE 1;

-- What members got by the settlements of seasons; a revision may take it away.
CREATE TABLE truerank.award (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of the last change; rises in the order of commits, so that nobody who reads on misses one.
    change bigint NOT NULL UNIQUE,
    ranking bigint NOT NULL,
    rule_id integer NOT NULL REFERENCES truerank.award_rule (id) ON DELETE CASCADE,
    member text COLLATE "C" NOT NULL,
    state text NOT NULL CHECK (state IN ('given', 'withdrawn')),
    revision integer NOT NULL,
    rank bigint NOT NULL,
    score bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    -- Null again after a change.
    acknowledged_at timestamptz,
    acknowledged_by text,
    UNIQUE (ranking, rule_id, member)
);
