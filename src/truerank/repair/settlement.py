"""The digest of a settlement, computed again from the events of its season."""

from truerank.model import Season
from truerank.repair.reference import Source
from truerank.repair.verified import Difference, PathResult

_NEWEST = "SELECT revision, population, digest FROM truerank.settlements(%s) LIMIT 1"
_FROM_EVENTS = """
    SELECT encode(d.digest, 'hex'), d.population, d.complete
    FROM truerank.settlement_digest_from_events(%s, %s) AS d"""


def check_settlement(conn: Source, season: Season) -> PathResult | None:
    """Compare the newest settlement with the events; None: the season has none.

    Its digest is one of its own: over all columns, under stand-ins for the members.

    Source: `schema/functions/settlement_digest_from_events.sql`.
    """
    row = conn.execute(_NEWEST, (season.ranking,)).fetchone()
    if row is None:
        return None
    revision, population, digest = row
    found = conn.execute(_FROM_EVENTS, (season.ranking, revision)).fetchone()
    assert found is not None, "the settlement is there in this snapshot"
    made, counted, complete = found
    name = f"settlement {revision}"
    if not complete:
        note = "some of its events are forgotten"
        return PathResult(name=name, compared=population, whole=False, note=note)
    differences = [
        Difference(subject=subject, expected=str(expected), found=str(held))
        for subject, expected, held in (
            ("population", counted, population),
            ("its digest", made, digest),
        )
        if expected != held
    ]
    return PathResult(name=name, compared=population, differences=tuple(differences))
