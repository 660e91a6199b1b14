-- States of members, members that were merged, and events that ended with a member's past.

-- One row per member and scope where the state ever was another one than active; board 0 stands
-- for all boards. Rows stay, so that versions of one member and scope always rise.
CREATE TABLE truerank.member_state (
    board_id integer NOT NULL,
    member text COLLATE "C" NOT NULL,
    -- What holds: of a ban and a wish to be hidden the ban.
    state text NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'hidden', 'banned', 'deleted', 'merged')),
    -- When a ban ends; null: never.
    until timestamptz CHECK (until IS NULL OR state = 'banned' AND isfinite(until)),
    -- The member's own wish. It outlasts a ban: who hid stays hidden when the ban ends.
    hides boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (board_id, member)
);
CREATE INDEX member_state_withheld ON truerank.member_state (member, board_id)
    WHERE state IN ('hidden', 'banned', 'merged');
CREATE INDEX member_state_until ON truerank.member_state (until) WHERE until IS NOT NULL;

-- A deleted member has no standings to withhold: those of a new life are seen.
CREATE OR REPLACE VIEW truerank.visible_standing AS
SELECT s.* FROM truerank.standing AS s
WHERE NOT EXISTS (
    SELECT FROM truerank.member_state AS m
    WHERE m.member = s.member AND m.board_id IN (0, s.ranking >> 36)
      AND m.state IN ('hidden', 'banned', 'merged'));

-- Both were never written to by any release.
DROP TABLE truerank.member_board;
ALTER TABLE truerank.member
    DROP COLUMN state, DROP COLUMN state_until, DROP COLUMN state_version;

-- merged_into names the account itself, never another that was merged on.
CREATE INDEX member_merged ON truerank.member (id) WHERE merged_into IS NOT NULL;
CREATE INDEX member_merged_into ON truerank.member (merged_into) WHERE merged_into IS NOT NULL;

-- Merges that a transaction under way may not know of.
CREATE TABLE truerank.merging (
    member text COLLATE "C" PRIMARY KEY,
    -- All transactions below it have ended: none is left that may not know. Null: not yet set.
    known_from xid8
);

-- One row, changed by each merge: who reads from a snapshot of before locks it, and fails.
CREATE TABLE truerank.merge_fence (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    merges bigint NOT NULL DEFAULT 0
);
INSERT INTO truerank.merge_fence DEFAULT VALUES;

-- Set when the member was reset or deleted: the event counts in no standing any more.
ALTER TABLE truerank.event ADD COLUMN ended_at timestamptz;
