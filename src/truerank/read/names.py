"""Names beside ids: joined to an answer in one query, remembered for seconds.

They never decide an order, and a PostgreSQL that is away costs names, not ranks: none is shown for
longer than it may be remembered, so that who is erased leaves none behind, and none is waited for.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from truerank.errors import Busy, DatabaseUnavailable
from truerank.model import Entry, Page, Place, Profile
from truerank.read.reach import Reach
from truerank.steps import Query, Steps

_PROFILES = "SELECT member, display_name, profile FROM truerank.profiles(%s::text[])"
_REMEMBERED_MAX = 50_000
_UNKNOWN = (None, -math.inf)

Row = TypeVar("Row", Entry, Place)


class Names:
    """The names that one client has read lately.

    Args:
        remember_ms: for so long, also that a member has none.
        reach: whether PostgreSQL answers.
    """

    def __init__(self, remember_ms: int, reach: Reach) -> None:
        self._remember_s = remember_ms / 1000
        self._known: dict[str, tuple[Profile | None, float]] = {}
        self._reach = reach

    def added(self, page: Page) -> Steps[Page]:
        """The page with the names of everybody on it."""
        rows: list[Entry | Place] = [*page.entries, *page.places, *page.around]
        members = {row.member for row in rows}
        profiles = yield from self._profiles(members)
        return replace(
            page,
            entries=_named(page.entries, profiles),
            places=_named(page.places, profiles),
            around=_named(page.around, profiles),
        )

    def forget(self, members: Iterable[str]) -> None:
        """Read these again before the next answer."""
        for member in members:
            self._known.pop(member, None)

    def _profiles(self, members: set[str]) -> Steps[Mapping[str, Profile | None]]:
        # Looked up once each: another thread may forget them, or make room, at any moment.
        known = {member: self._known.get(member, _UNKNOWN) for member in members}
        now = time.monotonic()
        wanted = [member for member, (_, until) in known.items() if until < now]
        found = {member: profile for member, (profile, _) in known.items()}
        found |= dict.fromkeys(wanted)
        if not wanted or not self._reach.asks():
            return found
        try:
            rows = yield from self._reach.asked(_read(wanted))
        except (Busy, DatabaseUnavailable):
            return found
        read = dict.fromkeys(wanted, None) | {
            member: Profile(member=member, name=name, details=details)
            for member, name, details in rows
        }
        if len(self._known) + len(read) > _REMEMBERED_MAX:
            self._known.clear()
        until = now + self._remember_s
        self._known |= {member: (profile, until) for member, profile in read.items()}
        return found | read


def _read(members: Sequence[str]) -> Steps[list[tuple[str, str | None, object]]]:
    rows: list[tuple[str, str | None, object]] = yield Query(_PROFILES, (members,))
    return rows


def _named(rows: Sequence[Row], profiles: Mapping[str, Profile | None]) -> tuple[Row, ...]:
    return tuple(replace(row, profile=profiles[row.member]) for row in rows)
