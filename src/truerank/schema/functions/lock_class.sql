-- lock_class: the first half of the key of every advisory lock that Truerank takes.
--
-- Published, so that an application can keep its own two-part keys out of its way: 'TR' in ASCII.
CREATE OR REPLACE FUNCTION truerank.lock_class() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 21586
$$;
