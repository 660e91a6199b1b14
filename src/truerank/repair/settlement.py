"""The settlements of a season: the newest against its events, all of them against their places."""

from truerank.model import Season
from truerank.repair.reference import Source
from truerank.repair.verified import EXAMPLES_MAX, Difference, PathResult

_NEWEST = "SELECT revision, population, digest FROM truerank.settlements(%s) LIMIT 1"
_FROM_EVENTS = """
    SELECT encode(d.digest, 'hex'), d.population, d.complete
    FROM truerank.settlement_digest_from_events(%s, %s) AS d"""
_PLACES = "SELECT sum(population)::bigint FROM truerank.settlements(%s)"
_DIFFERENCES = """
    SELECT cohort, revision, subject, expected, found
    FROM truerank.settlement_differences(%s, %s)"""


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


def check_places(conn: Source, season: Season) -> PathResult | None:
    """Compare the stored places of all revisions with what each announces; None: it has none.

    Those of the season's cohorts too.

    Source: `schema/functions/settlement_differences.sql`.
    """
    row = conn.execute(_PLACES, (season.ranking,)).fetchone()
    assert row is not None, "an aggregate returns one row"
    rows = conn.execute(_DIFFERENCES, (season.ranking, EXAMPLES_MAX)).fetchall()
    if row[0] is None and not rows:
        return None
    return PathResult(
        name="settled places",
        compared=row[0] or 0,
        differences=tuple(
            Difference(
                subject=f"revision {revision}{_of(cohort)}: {subject}",
                expected=expected,
                found=found,
            )
            for cohort, revision, subject, expected, found in rows[:EXAMPLES_MAX]
        ),
    )


def _of(cohort: int | None) -> str:
    return "" if cohort is None else f" of cohort {cohort}"
