"""The cohorts of a season, compared with the season itself."""

from truerank.model import Season
from truerank.repair.reference import Source
from truerank.repair.verified import EXAMPLES_MAX, Difference, PathResult

_MEMBERS = """
    SELECT sum(c.members)::bigint
    FROM truerank.cohorts((%s::bigint >> 36)::integer, %s, 0, NULL) AS c"""
_DIFFERENCES = """
    SELECT cohort, subject, expected, found FROM truerank.cohort_differences(%s, %s)"""


def check_cohorts(conn: Source, season: Season) -> PathResult | None:
    """Compare standings, sizes and settlements of cohorts; None: the season has none.

    Source: `schema/functions/cohort_differences.sql`.
    """
    row = conn.execute(_MEMBERS, (season.ranking, season.label)).fetchone()
    assert row is not None, "an aggregate returns one row"
    rows = conn.execute(_DIFFERENCES, (season.ranking, EXAMPLES_MAX)).fetchall()
    if row[0] is None and not rows:
        return None
    return PathResult(
        name="cohorts",
        compared=row[0] or 0,
        differences=tuple(
            Difference(
                subject=subject if cohort is None else f"{subject} in cohort {cohort}",
                expected=expected,
                found=found,
            )
            for cohort, subject, expected, found in rows[:EXAMPLES_MAX]
        ),
    )
