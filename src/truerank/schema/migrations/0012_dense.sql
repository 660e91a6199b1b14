-- Boards whose places can be counted densely (1223) from the projection.

-- dense_turns: how often it was turned on or off since the board was made. A copy of the group that
-- was begun at a lower number doesn't keep what it should.
ALTER TABLE truerank.board
    ADD COLUMN dense boolean NOT NULL DEFAULT false,
    ADD COLUMN dense_turns integer NOT NULL DEFAULT 0;
CREATE INDEX board_dense ON truerank.board (grp) WHERE dense_turns > 0;
