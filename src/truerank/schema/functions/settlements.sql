-- settlements: the revisions of a season's settlement, the newest first.
CREATE OR REPLACE FUNCTION truerank.settlements(p_ranking bigint)
RETURNS TABLE (revision integer, settled_at timestamptz, actor text, reason text,
               population bigint, different bigint, total numeric, excluded bigint, changed bigint,
               digest text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.revision, s.settled_at, s.actor, s.reason, s.population, s.different,
           s.total * ('1e-' || b.decimals)::numeric,
           (SELECT count(*) FROM truerank.settlement_excluded AS x
            WHERE x.ranking = s.ranking AND x.revision = s.revision),
           s.changed, encode(s.digest, 'hex')
    FROM truerank.settlement AS s JOIN truerank.board AS b ON b.id = s.ranking >> 36
    WHERE s.ranking = p_ranking ORDER BY s.revision DESC
$$;
