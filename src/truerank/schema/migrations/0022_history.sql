-- From when on the history that is kept says what a board was.

-- All events that were removed, and all corrections and ends of such events, came before this.
ALTER TABLE truerank.pruning ADD COLUMN exact_from timestamptz NOT NULL DEFAULT '-infinity';
UPDATE truerank.pruning SET exact_from = clock_timestamp();

-- A member was reset then whose forgotten events had counted in the ranking: of before nothing is
-- known of it.
CREATE TABLE truerank.forgotten_reset (
    ranking bigint NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (ranking, at)
);

-- What had committed at the freeze, where the public looks back from there. Null: it isn't known.
ALTER TABLE truerank.freeze ADD COLUMN snapshot pg_snapshot;

-- Who was deleted, and not only reset, is found by what ended then.
CREATE INDEX audit_deleted ON truerank.audit (subject, at) WHERE action = 'delete_member';
