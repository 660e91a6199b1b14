-- Many seasons at once, and deleted boards that have nothing left.

-- Seasons that don't overlap, in their order; see truerank.season_runs.
CREATE TYPE truerank.season_run AS (
    starts_at timestamptz[],
    ends_at timestamptz[],
    rankings bigint[]
);

-- When the last of a deleted board's rows was removed: nothing can follow.
ALTER TABLE truerank.board ADD COLUMN purged_at timestamptz;
CREATE INDEX board_to_purge ON truerank.board (id)
    WHERE deleted_at IS NOT NULL AND purged_at IS NULL;
