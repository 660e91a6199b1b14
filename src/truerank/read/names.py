"""Names beside ids: joined to an answer in one query, remembered for seconds.

They never decide an order, and a PostgreSQL that is away costs names, not ranks.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from truerank.errors import DatabaseUnavailable
from truerank.model import Entry, Page, Place, Profile
from truerank.steps import Query, Steps

_PROFILES = "SELECT member, display_name, profile FROM truerank.profiles(%s::text[])"
_REMEMBERED_MAX = 50_000
_AWAY_S = 5.0

Row = TypeVar("Row", Entry, Place)


class Names:
    """The names that one client has read lately.

    Args:
        remember_ms: for so long, also that a member has none.
    """

    def __init__(self, remember_ms: int) -> None:
        self._remember_s = remember_ms / 1000
        self._known: dict[str, tuple[Profile | None, float]] = {}
        self._away_until = 0.0

    def added(self, page: Page) -> Steps[Page]:
        """The page with the names of everybody on it."""
        rows: list[Entry | Place] = [*page.entries, *page.places, *page.around]
        members = {row.member for row in rows}
        yield from self._read(members)
        return replace(
            page,
            entries=self._named(page.entries),
            places=self._named(page.places),
            around=self._named(page.around),
        )

    def forget(self, members: Iterable[str]) -> None:
        """Read these again before the next answer."""
        for member in members:
            self._known.pop(member, None)

    def _read(self, members: set[str]) -> Steps[None]:
        now = time.monotonic()
        wanted = [m for m in members if m not in self._known or self._known[m][1] < now]
        if not wanted or now < self._away_until:
            return
        try:
            rows = yield Query(_PROFILES, (wanted,))
        except DatabaseUnavailable:
            # Every page would wait for it: then one asks, now and again.
            self._away_until = time.monotonic() + _AWAY_S
            return
        if len(self._known) + len(wanted) > _REMEMBERED_MAX:
            self._known.clear()
        until = now + self._remember_s
        self._known |= dict.fromkeys(wanted, (None, until))
        for member, name, details in rows:
            profile = Profile(member=member, name=name, details=details)
            self._known[member] = (profile, until)

    def _named(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        return tuple(
            replace(row, profile=self._known.get(row.member, (None, 0))[0]) for row in rows
        )
