-- Leagues: the members of a season in cohorts of bounded size, each with a ranking of its own, and
-- tiers between which members move when a season is settled.

-- cohort: of the same board and season as the season's own, for some of its members.
ALTER TABLE truerank.ranking
    DROP CONSTRAINT ranking_kind_check,
    ADD CONSTRAINT ranking_kind_check CHECK (kind IN ('live', 'frozen', 'cohort')) NOT VALID;

-- How a board's seasons of one period are divided. Dropped: no member is divided any more.
CREATE TABLE truerank.league (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    period text NOT NULL CHECK (period IN ('all', 'day', 'week', 'month', 'year', 'custom')),
    size integer NOT NULL CHECK (size BETWEEN 2 AND 1000),
    -- Members with the same key share cohorts; false: whoever comes first.
    by_key boolean NOT NULL,
    -- Their names, the lowest first; everybody begins there. Numbered from 0.
    tiers text[] NOT NULL CHECK (cardinality(tiers) BETWEEN 1 AND 20),
    promote integer NOT NULL CHECK (promote >= 0),
    demote integer NOT NULL CHECK (demote >= 0),
    -- Seasons with numbers from this one on, and below the other, are divided.
    from_ranking bigint NOT NULL,
    to_ranking bigint NOT NULL,
    -- Standings from before are brought in by the worker: up to which one, and whether all are.
    -- barrier_xid: a transaction that began after the league was set; later ones know of it.
    barrier_xid xid8,
    scanned_ranking bigint NOT NULL DEFAULT 0,
    scanned_member text COLLATE "C" NOT NULL DEFAULT '',
    scanned boolean NOT NULL DEFAULT false,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_at timestamptz,
    CHECK (promote + demote <= size),
    -- Which of them comes next is told by their numbers.
    CHECK (period IN ('day', 'week', 'month', 'year')
           OR promote = 0 AND demote = 0 AND cardinality(tiers) = 1)
);
CREATE UNIQUE INDEX league_of ON truerank.league (board_id, period) WHERE dropped_at IS NULL;
CREATE INDEX league_by_board ON truerank.league (board_id);

-- The rankings that a season is divided into.
CREATE TABLE truerank.cohort (
    ranking bigint PRIMARY KEY,
    season bigint NOT NULL,
    number integer NOT NULL,
    tier smallint NOT NULL,
    key text COLLATE "C" NOT NULL,
    size integer NOT NULL,
    -- Places that were given away; who leaves gives none back.
    members integer NOT NULL DEFAULT 0 CHECK (members <= size),
    UNIQUE (season, number)
) WITH (fillfactor = 70);
CREATE INDEX cohort_with_room ON truerank.cohort (season, tier, key) WHERE members < size;

-- Who is in which. cohort null: whoever has a standing and is yet to be divided. Written by whoever
-- holds the standing in the season locked, so that nobody ever waits for a row of a cohort.
CREATE TABLE truerank.cohort_member (
    season bigint NOT NULL,
    cohort bigint,
    -- Of the first event.
    first_position bigint NOT NULL,
    member text COLLATE "C" NOT NULL,
    PRIMARY KEY (season, member)
) WITH (fillfactor = 70);
CREATE INDEX cohort_member_undivided ON truerank.cohort_member (season, first_position)
    WHERE cohort IS NULL;
CREATE INDEX cohort_member_of ON truerank.cohort_member (cohort, member) WHERE cohort IS NOT NULL;

-- Given beforehand; without one it is ''.
CREATE TABLE truerank.league_key (
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    member text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 100),
    PRIMARY KEY (board_id, member)
);

-- Promotions and demotions: a member's tier is that of the last one.
CREATE TABLE truerank.league_move (
    board_id integer NOT NULL REFERENCES truerank.board (id) ON DELETE CASCADE,
    period text NOT NULL,
    season bigint NOT NULL,
    tier_from smallint NOT NULL,
    tier_to smallint NOT NULL,
    member text COLLATE "C" NOT NULL,
    PRIMARY KEY (board_id, period, member, season)
);
CREATE INDEX league_move_season ON truerank.league_move (season);
