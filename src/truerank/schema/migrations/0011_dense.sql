-- Boards whose places can be counted densely (1223) from the projection.

-- Functions whose parameters or results change: replaced as a whole once the migrations are through.
DROP FUNCTION IF EXISTS truerank.read_batch(
    pg_snapshot, pg_snapshot, smallint[], bigint[], uuid[], integer);
DROP FUNCTION IF EXISTS truerank.scan_group(smallint, bigint, text, integer);
DROP FUNCTION IF EXISTS truerank.boards(text);
DROP FUNCTION IF EXISTS truerank.create_board(
    text, text, boolean, text[], text, integer, text[], boolean[], bigint[], bigint[], bigint,
    bigint, bigint, bigint);
DROP FUNCTION IF EXISTS truerank.read_page(
    bigint, integer, bigint, integer, text[], integer, boolean, text, bytea, text, bytea, bytea,
    bigint, boolean, bytea[]);

-- dense_turns: how often it was turned on or off since the board was made. A copy of the group that
-- was begun at a lower number doesn't keep what it should.
ALTER TABLE truerank.board
    ADD COLUMN dense boolean NOT NULL DEFAULT false,
    ADD COLUMN dense_turns integer NOT NULL DEFAULT 0;
CREATE INDEX board_dense ON truerank.board (grp) WHERE dense_turns > 0;
