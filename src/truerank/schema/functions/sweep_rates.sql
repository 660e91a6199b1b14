-- sweep_rates: forget the counts of past minutes.
CREATE OR REPLACE FUNCTION truerank.sweep_rates() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM truerank.rate WHERE minute < clock_timestamp() - interval '2 minutes'
$$;
