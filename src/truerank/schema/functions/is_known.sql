-- is_known: whether any event or name is of a member, or of ids that are one with it.
--
-- Commands about members take every id: one may come before its first event. This tells of those
-- that are perhaps misspelt. Where events are forgotten, whoever has none may have had some.
CREATE OR REPLACE FUNCTION truerank.is_known(p_member text) RETURNS boolean
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM truerank.member AS m
                   WHERE m.id = p_member AND m.display_name IS NOT NULL)
        OR EXISTS (SELECT FROM truerank.board AS b
                   WHERE truerank.has_history(b, truerank.names_of(truerank.owner_of(p_member))))
$$;
