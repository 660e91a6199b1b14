-- Seasons that wait are tried again later; awards say what was dealt with; foreign keys have indexes.

-- When a season that is due may be tried again. No row: at once.
CREATE TABLE truerank.close_attempt (
    ranking bigint PRIMARY KEY,
    tries integer NOT NULL CHECK (tries >= 1),
    next_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The rules by which a season's awards are given, in all its revisions.
CREATE TABLE truerank.settlement_rule (
    ranking bigint NOT NULL,
    rule_id integer NOT NULL REFERENCES truerank.award_rule (id) ON DELETE CASCADE,
    PRIMARY KEY (ranking, rule_id)
);
CREATE INDEX settlement_rule_by_rule ON truerank.settlement_rule (rule_id);
INSERT INTO truerank.settlement_rule (ranking, rule_id)
SELECT s.ranking, r.id
FROM truerank.settlement AS s
JOIN truerank.ranking AS k ON k.id = s.ranking
JOIN truerank.award_rule AS r ON r.board_id = k.board_id AND r.period = k.period
WHERE s.revision = 1 AND r.made_at <= s.settled_at
  AND (r.dropped_at IS NULL OR r.dropped_at > s.settled_at);

-- What was dealt with last, and under which change: a revision doesn't take it away.
ALTER TABLE truerank.award
    ADD COLUMN acknowledged_state text CHECK (acknowledged_state IN ('given', 'withdrawn')),
    ADD COLUMN acknowledged_change bigint;
UPDATE truerank.award SET acknowledged_state = state, acknowledged_change = change
WHERE acknowledged_at IS NOT NULL;
CREATE INDEX award_by_rule ON truerank.award (rule_id);
CREATE INDEX award_by_member ON truerank.award (member);
CREATE INDEX award_open ON truerank.award (change) WHERE acknowledged_at IS NULL;

-- What awards were before a revision changed them: who read that may acknowledge it still.
CREATE TABLE truerank.award_past (
    change bigint PRIMARY KEY,
    award_id bigint NOT NULL REFERENCES truerank.award (id) ON DELETE CASCADE,
    state text NOT NULL CHECK (state IN ('given', 'withdrawn')),
    revision integer NOT NULL,
    rank bigint NOT NULL,
    score bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by text
);
CREATE INDEX award_past_by_award ON truerank.award_past (award_id);

CREATE INDEX award_rule_by_board ON truerank.award_rule (board_id);
CREATE INDEX attachment_by_board ON truerank.attachment (board_id);
CREATE INDEX parked_by_attachment ON truerank.parked (attachment_id);
