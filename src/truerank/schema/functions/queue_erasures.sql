-- queue_erasures: keep for receivers that somebody is erased, by the keyed hash of each id.
--
-- No id is kept: whoever has the receiver's secret and an id can tell whether it is this one. A
-- secret that is still signed with counts as well. The hashes go when the receiver has them.
CREATE OR REPLACE FUNCTION truerank.queue_erasures(p_erasures truerank.erasure[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO truerank.webhook_delivery (webhook, kind, data)
    SELECT w.id, 'member.erased', jsonb_build_object(
        'erasure', e.id, 'asked_at', truerank.instant_text(e.asked_at),
        'erased_at', truerank.instant_text(clock_timestamp()),
        'stand_ins', e.stand_ins, 'events', e.events, 'digest', encode(e.digest, 'hex'),
        'member_hashes', (
            SELECT jsonb_agg(encode(truerank.hmac_sha256(s, convert_to(n, 'UTF8')), 'hex')
                             ORDER BY s_at, n_at)
            FROM unnest(ARRAY[w.secret, CASE WHEN w.former_until > clock_timestamp()
                                             THEN w.former_secret END])
                 WITH ORDINALITY AS s (s, s_at)
            CROSS JOIN unnest(e.names) WITH ORDINALITY AS n (n, n_at)
            WHERE s IS NOT NULL))
    FROM unnest(p_erasures) AS e
    JOIN truerank.webhook AS w ON 'member.erased' = ANY (w.kinds)
    ORDER BY e.id, w.id
$$;
