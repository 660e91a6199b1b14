-- lock_class: the first half of the key of every advisory lock that Truerank takes.
--
-- Published, so that an application can keep its own two-part keys out of its way: 'TR' in ASCII.
-- The second halves: 0 to 255 a board's writers and closers, 256 who seals, 257 who gives awards,
-- 258 who takes members away or merges them, 1024 to 2047 who copies a season that is to be frozen.
CREATE OR REPLACE FUNCTION truerank.lock_class() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 21586
$$;
