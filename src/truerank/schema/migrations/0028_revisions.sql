-- Settlements of members whose ids were merged since, from revision to revision.

-- The names that counted for a member in a revision.
CREATE INDEX settlement_name_of ON truerank.settlement_name (ranking, revision, member);

ALTER TABLE truerank.cohort_member
    -- The season was settled when the id was merged into another: that one has the place now, and what
    -- was settled before has this one.
    ADD COLUMN carried boolean NOT NULL DEFAULT false;

ALTER TABLE truerank.freeze
    -- Those with the same number are frozen at one instant. Null: alone.
    ADD COLUMN together bigint;
