-- The textbook pipeline: an outbox whose rows are marked as published. In a schema of its own.

CREATE SCHEMA textbook;

CREATE TABLE textbook.season (
    id integer PRIMARY KEY,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL
);
INSERT INTO textbook.season VALUES (1, '-infinity', 'infinity');

CREATE TABLE textbook.event (
    event_id uuid PRIMARY KEY,
    member text NOT NULL,
    value bigint NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE textbook.score (
    member text PRIMARY KEY,
    score bigint NOT NULL,
    version bigint NOT NULL
);

CREATE TABLE textbook.outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    member text NOT NULL,
    score bigint NOT NULL,
    version bigint NOT NULL,
    published_at timestamptz
);
CREATE INDEX outbox_unpublished ON textbook.outbox (id) WHERE published_at IS NULL;
