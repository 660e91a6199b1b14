-- Where the comparison of what is shown with its source stands, and what the last one found.

-- One row. Workers take turns: who holds it goes on where the one before was. grp null: a pass has
-- yet to begin; ranking null: the group has; sort_key and member: the last standing compared.
CREATE TABLE truerank.reconciling (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    holder uuid,
    held_until timestamptz NOT NULL DEFAULT '-infinity',
    began_at timestamptz,
    grp integer,
    ranking bigint,
    sort_key bytea,
    member text COLLATE "C",
    -- Of the pass under way, and of the last one that ended; keys as `truerank reconcile --json`.
    found jsonb NOT NULL DEFAULT '{}',
    last_found jsonb,
    last_ended_at timestamptz,
    last_took_ms bigint
) WITH (fillfactor = 50);
INSERT INTO truerank.reconciling DEFAULT VALUES;
