-- Merges are tried in turn, and rows that were parked and taken in later are found by their event.

ALTER TABLE truerank.merging ADD COLUMN tried_at timestamptz NOT NULL DEFAULT '-infinity';
CREATE INDEX merging_turn ON truerank.merging (tried_at, member);

CREATE INDEX parked_taken ON truerank.parked (event_uuid) WHERE done = 'taken';
