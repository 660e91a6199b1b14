"""Hints say that a board changed, never what it shows: parsed, merged and rate-limited here.

A hint is no data. Whoever gets one asks for the answer; so hints may be merged, forged or lost,
and no reader sees a wrong number for it.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import IntEnum, StrEnum

from truerank.projection.keys import GroupKeys
from truerank.read.season import NamedRanking
from truerank.steps import Get, HashGet, Steps

_NUMBER = rb"\d{1,19}"
_HINT = re.compile(
    rb"(\d{1,9}) (\d{1,19}):[0-9a-f-]{1,36} ([0-9a-f]{32}) "
    rb"(" + _NUMBER + rb"(?:," + _NUMBER + rb")*)"
)
_SEASONS_MAX = 64  # of one board, in one notice; more are told as "any of them"
_COHORTS_MAX = 256
_FIRST_DAY = date(1970, 1, 1)
_FIRST_MONDAY = date(1969, 12, 29)


_COHORT = 9


class _Period(IntEnum):
    ALL = 1
    DAY = 2
    WEEK = 3
    MONTH = 4
    YEAR = 5


class Kind(StrEnum):
    """Why a listener is told something."""

    TICK = "tick"  # where the stream begins
    HINT = "hint"  # the board changed
    RESYNC = "resync"  # hints may have been lost: whatever is shown may be old


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One message of the projection: these rankings of a board changed."""

    board: int
    tick: int
    generation: str
    rankings: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a listener is told at once, however many hints came since the last notice."""

    kind: Kind
    generation: str | None = None
    tick: int | None = None
    seasons: tuple[str, ...] | None = None  # labels of those that changed; None: any may have
    # By the label of their season, the numbers of those that changed; None: any may have.
    cohorts: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """All that waited for one listener, in the numbers of rankings; None: any."""

    kind: Kind
    generation: str | None
    tick: int | None
    seasons: frozenset[int] | None
    cohorts: frozenset[int] | None

    @property
    def unnamed(self) -> frozenset[int]:
        """Those whose numbers don't tell what they are called."""
        nameless = (each for each in self.seasons or () if season_label(each) is None)
        return frozenset(nameless) | (self.cohorts or frozenset())

    def told(
        self, named: Mapping[int, NamedRanking], *, unseen: Collection[int] = ()
    ) -> Notice | None:
        """What the listener is told of it; None: nothing.

        Args:
            named: what is known of those that are unnamed.
            unseen: seasons and cohorts of which it is told nothing: what goes on behind a freeze.
        """
        seasons, cohorts = self.seasons, self._cohorts(named, unseen)
        if self.kind is Kind.HINT:
            if seasons is not None:
                seasons = seasons.difference(unseen)
            if cohorts is None and unseen and seasons is not None and not seasons:
                # They change with their season, which is one of those that are not told of.
                cohorts = {}
            if seasons is not None and not seasons and cohorts is not None and not cohorts:
                return None
        return Notice(
            kind=self.kind,
            generation=self.generation,
            tick=self.tick,
            seasons=_labels(seasons, named),
            cohorts=cohorts,
        )

    def _cohorts(
        self, named: Mapping[int, NamedRanking], unseen: Collection[int]
    ) -> dict[str, tuple[int, ...]] | None:
        if self.cohorts is None:
            return None
        found: dict[str, list[int]] = {}
        for ranking in sorted(self.cohorts.difference(unseen)):
            name = named.get(ranking)
            if name is None or name.cohort is None:
                return None
            if name.season not in unseen:
                found.setdefault(name.label, []).append(name.cohort)
        return {label: tuple(numbers) for label, numbers in found.items()}


def parse(message: bytes) -> Hint | None:
    """Read one message of a channel of hints; None where it isn't one.

    Only digits and hexadecimal letters come through, so nothing in a hint can break the frame
    that it is sent on in.
    """
    found = _HINT.fullmatch(message)
    if found is None:
        return None
    board, tick, generation, rankings = found.groups()
    return Hint(
        board=int(board),
        tick=int(tick),
        generation=generation.decode(),
        rankings=tuple(int(ranking) for ranking in rankings.split(b",")),
    )


def season_label(ranking: int) -> str | None:
    """The label of a built-in season by its ranking's number; None for any other.

    Source: `schema/functions/ranking_id.sql` and `period_label.sql`.
    """
    period, index = (ranking >> 32) & 0xF, (ranking & 0xFFFF_FFFF) - 2**31
    label = None
    try:
        match period:
            case _Period.ALL:
                label = "all"
            case _Period.DAY:
                label = (_FIRST_DAY + timedelta(days=index)).isoformat()
            case _Period.WEEK:
                year, week, _ = (_FIRST_MONDAY + timedelta(weeks=index)).isocalendar()
                label = f"{year:04}-W{week:02}"
            case _Period.MONTH:
                label = date(index // 12, index % 12 + 1, 1).isoformat()[:7]
            case _Period.YEAR:
                label = date(index, 1, 1).isoformat()[:4]
            case _:
                pass
    except (OverflowError, ValueError):
        return None  # a forged number: no season is called so
    return label


class Pending:
    """What one listener wasn't told yet: never more than one notice, whatever arrives.

    Args:
        gap_s: at least so many seconds between two notices.
    """

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._next_at = 0.0
        self._kind: Kind | None = None
        self._generation: str | None = None
        self._tick: int | None = None
        self._seasons: set[int] | None = set()
        self._cohorts: set[int] | None = set()

    def add(self, hint: Hint) -> None:
        """Merge a hint into what waits."""
        self._kind = self._kind or Kind.HINT
        self._generation, self._tick = hint.generation, hint.tick
        cohorts = {each for each in hint.rankings if _is_cohort(each)}
        self._seasons = _merged(self._seasons, set(hint.rankings) - cohorts, _SEASONS_MAX)
        self._cohorts = _merged(self._cohorts, cohorts, _COHORTS_MAX)

    def lost(self) -> None:
        """Hints may have been lost: whatever waits becomes a resync."""
        self._kind, self._seasons, self._cohorts = Kind.RESYNC, None, None

    def due_in(self, now: float) -> float | None:
        """Seconds until the next notice may go out; None where nothing waits."""
        return None if self._kind is None else max(0.0, self._next_at - now)

    def take(self) -> Waited:
        """What the one notice is made of that stands for all that waited; then call `gave`."""
        assert self._kind is not None, "the caller asked whether something is due"
        kind, seasons, cohorts = self._kind, self._seasons, self._cohorts
        self._kind, self._seasons, self._cohorts = None, set(), set()
        return Waited(
            kind=kind,
            generation=self._generation,
            tick=self._tick,
            seasons=None if seasons is None else frozenset(seasons),
            cohorts=None if cohorts is None else frozenset(cohorts),
        )

    def gave(self, now: float) -> None:
        """Let the next notice wait for its gap from this monotonic time on, in seconds."""
        self._next_at = now + self._gap_s


def current(prefix: str, group: int) -> Steps[tuple[str | None, int | None]]:
    """The generation that readers of a group read, and its tick; None where there is no copy.

    Raises:
        ProjectionUnavailable: Redis did not answer.
    """
    keys = GroupKeys(prefix, group)
    pointed = yield Get(keys.pointer)
    if not pointed:
        return None, None
    generation = pointed.decode()
    (tick,) = yield HashGet(keys.generation(generation).meta, ("tick",))
    return (generation, int(tick)) if tick else (None, None)


def _is_cohort(ranking: int) -> bool:
    return (ranking >> 32) & 0xF == _COHORT


def _merged(known: set[int] | None, more: set[int], number_max: int) -> set[int] | None:
    if known is None:
        return None
    known |= more
    return known if len(known) <= number_max else None


def _labels(
    rankings: frozenset[int] | None, named: Mapping[int, NamedRanking]
) -> tuple[str, ...] | None:
    if rankings is None:
        return None
    labels: dict[str, None] = {}  # a frozen season and what is shown of it have the same
    for ranking in sorted(rankings):
        name = named.get(ranking)
        label = season_label(ranking) if name is None else name.label
        if label is None:
            return None
        labels[label] = None
    return tuple(labels)
