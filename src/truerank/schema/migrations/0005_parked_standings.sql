-- What the projection can't show, and groups that a worker could not serve.

-- Rankings that can't be applied to a copy in Redis: readers get them from PostgreSQL.
CREATE TABLE truerank.parked_standing (
    ranking bigint PRIMARY KEY,
    grp smallint NOT NULL,
    -- The first standing that was refused; null: no standing of the ranking can be applied.
    member text COLLATE "C",
    version bigint,
    reason text NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries integer NOT NULL DEFAULT 1,
    -- When a new copy of the group is to try it again.
    retry_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX parked_standing_due ON truerank.parked_standing (grp, retry_at);

-- A worker that could not serve a group leaves it to others for a while.
ALTER TABLE truerank.lease
    ADD COLUMN refused_by uuid,
    ADD COLUMN refused_until timestamptz NOT NULL DEFAULT '-infinity';
