"""Every standing of a season, computed again from its events alone."""

from collections.abc import Iterator

import psycopg

from truerank.model import Season
from truerank.repair.recompute import MEMBERS_PER_SLICE, SLICE
from truerank.repair.reference import Source
from truerank.repair.verified import EXAMPLES_MAX, Difference, PathResult


def recount(conn: Source, season: Season) -> PathResult:
    """Compare the stored standings with what the events come to, in one snapshot.

    Source: `schema/functions/recount_slice.sql`.
    """
    members = 0
    found: dict[str, Difference] = {}
    try:
        with conn.transaction():  # a savepoint: the snapshot outlasts what is refused
            for walked, differences in _slices(conn, season):
                members += walked
                for each in differences:
                    if len(found) < EXAMPLES_MAX:
                        found.setdefault(each.subject, each)
    except psycopg.errors.ObjectNotInPrerequisiteState:
        return PathResult(
            name="events", compared=0, whole=False, note="the events of this season are forgotten"
        )
    return PathResult(name="events", compared=members, differences=tuple(found.values()))


def _slices(conn: Source, season: Season) -> Iterator[tuple[int, list[Difference]]]:
    after = ""
    while True:
        (head, *rows) = conn.execute(SLICE, (season.ranking, after, MEMBERS_PER_SLICE)).fetchall()
        last, _, members, *_ = head
        yield members, [_difference(*row) for row in rows]
        if members < MEMBERS_PER_SLICE:
            return
        after = last


def _difference(
    member: str,
    kind: str,
    _members: None,
    stored: str | None,
    version: int | None,
    counted: str | None,
) -> Difference:
    expected = None if counted is None else f"{counted} by its events"
    held = None if stored is None else f"{stored} at version {version}"
    if kind == "different" and stored == counted:
        held = f"{held}, reached at another event"
    return Difference(subject=member, expected=expected, found=held)
