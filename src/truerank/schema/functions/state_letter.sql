-- state_letter: how the projection writes a member's state; a: nothing is withheld.
CREATE OR REPLACE FUNCTION truerank.state_letter(p_state text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE p_state WHEN 'hidden' THEN 'h' WHEN 'banned' THEN 'b' WHEN 'merged' THEN 'm'
                        ELSE 'a' END
$$;
