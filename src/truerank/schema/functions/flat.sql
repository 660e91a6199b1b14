-- flat: the elements of an array of any shape, in order, counted from 1 in one dimension.
CREATE OR REPLACE FUNCTION truerank.flat(p_array anyarray) RETURNS anyarray
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN array_ndims(p_array) = 1 AND array_lower(p_array, 1) = 1 THEN p_array
                WHEN p_array IS NOT NULL THEN ARRAY(SELECT unnest(p_array)) END
$$;
