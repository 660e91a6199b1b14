-- meet_epochs: a new epoch if copies are of epochs that this source knows nothing of.
--
-- They were made by a source that had gone on from the state that this one was set back to. The
-- present epoch was left behind there: to go on under its name would mix two histories.
-- Returns: the epoch now.
CREATE OR REPLACE FUNCTION truerank.meet_epochs(p_epochs uuid[]) RETURNS uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT truerank.new_epoch(s.epoch, 'a copy is of an epoch that is unknown here')
    FROM truerank.setting AS s
    WHERE EXISTS (SELECT FROM unnest(p_epochs) AS e
                  WHERE e <> s.epoch
                    AND NOT EXISTS (SELECT FROM truerank.past_epoch AS p WHERE p.epoch = e));
    SELECT epoch FROM truerank.setting;
$$;
