-- frozen_id: the number of the ranking that shows what another one was at a freeze.
--
-- A kind of its own, so it is of the same board and group, and no freeze uses it again.
CREATE OR REPLACE FUNCTION truerank.frozen_id(p_board_id integer, p_freeze bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (p_board_id::bigint << 36) | (8::bigint << 32) | p_freeze
$$;
