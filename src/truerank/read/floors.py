"""Which copies of a group are too old to be read, whatever their reader asks for.

A Redis that fell back, or a worker that stands still, may show somebody who was hidden, banned or
deleted since. PostgreSQL names the tick from which on the newest such change is shown, and a
process remembers how far it has seen each group: what is older than either is not served.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from truerank.model import Freshness
from truerank.steps import Query, Steps

_UNTOLD = 2**63 - 1  # no tick shows the newest change yet
_ASK_EVERY_S = 0.02
_HURRY_S = 2.0  # for a question that every reader of the group waits for
_PRIVACY = "SELECT truerank.privacy_tick(%s::smallint)"


class Floor(msgspec.Struct, frozen=True):
    """What an answer must not be older than, known before it was asked for."""

    privacy_tick: int
    epoch: str
    seen_tick: int  # within that epoch

    def allows(self, freshness: Freshness) -> bool:
        """Whether an answer of the projection may be served."""
        assert freshness.tick is not None, "an answer of the projection names its tick"
        return freshness.tick >= self.privacy_tick and (
            freshness.epoch != self.epoch or freshness.tick >= self.seen_tick
        )


@dataclass(slots=True)
class _Group:
    privacy_tick: int = 0
    told: int = 0  # without the changes that no tick shows yet
    source: str = ""  # the epoch in which that was told
    doubted_at: float = 0.0  # monotonic, in seconds: what was asked before says nothing
    asked_at: float = 0.0
    epoch: str = ""
    seen_tick: int = 0


class Floors:
    """What one process knows of it, by group. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, _Group] = {}
        self._all_doubted_at: float | None = None  # monotonic, in seconds

    def learn(
        self, group: int, privacy_tick: int, *, asked_at: float, epoch: str | None = None
    ) -> None:
        """Take in what PostgreSQL says of a group.

        Args:
            group: its number.
            privacy_tick: from which on the newest change is shown.
            asked_at: the monotonic time before PostgreSQL was asked, in seconds.
            epoch: of the source, where it was told as well: in another one ticks begin anew.
        """
        with self._lock:
            known = self._known(group)
            if asked_at < known.doubted_at:
                return
            if epoch not in {None, known.source}:
                known.source, known.told = epoch or "", 0
            if privacy_tick != _UNTOLD:
                privacy_tick = known.told = max(known.told, privacy_tick)
            known.privacy_tick = privacy_tick

    def raise_to(self, group: int, privacy_tick: int, *, epoch: str) -> None:
        """Take in what was written down of a group: it may be old, so nothing is lower for it.

        Args:
            group: its number.
            privacy_tick: from which on the newest change was shown then.
            epoch: of the source, then.
        """
        with self._lock:
            known = self._known(group)
            known.source = known.source or epoch
            known.privacy_tick = max(known.privacy_tick, privacy_tick)

    def doubt(self, groups: Iterable[int] | None) -> None:
        """Ask PostgreSQL again before one of these groups is read; None: before any is."""
        with self._lock:
            if groups is None:
                self._all_doubted_at = time.monotonic()
            for group in list(self._groups) if groups is None else groups:
                known = self._known(group)
                known.privacy_tick, known.doubted_at = _UNTOLD, time.monotonic()
                known.asked_at = 0.0

    def before(self, group: int) -> Steps[Floor]:
        """What an answer that is asked for from now on must not be older than.

        Raises:
            DatabaseUnavailable: only PostgreSQL knows, and it doesn't answer.

        Source: `schema/functions/privacy_tick.sql`.
        """
        with self._lock:
            known = self._known(group)
            now = time.monotonic()
            asks = known.privacy_tick == _UNTOLD and now >= known.asked_at + _ASK_EVERY_S
            if asks:
                known.asked_at = now
        if asks:
            ((told,),) = yield Query(_PRIVACY, (group,), limit_s=_HURRY_S)
            self.learn(group, told, asked_at=now)
        with self._lock:
            return Floor(known.privacy_tick, known.epoch, known.seen_tick)

    def saw(self, group: int, freshness: Freshness) -> None:
        """Remember an answer that is served: no older one is from now on."""
        assert freshness.tick is not None, "an answer of the projection names its tick"
        with self._lock:
            known = self._known(group)
            if known.epoch != freshness.epoch:
                known.epoch, known.seen_tick = freshness.epoch, freshness.tick
            else:
                known.seen_tick = max(known.seen_tick, freshness.tick)

    def _known(self, group: int) -> _Group:
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _Group()
            if self._all_doubted_at is not None:
                # What is being asked of it at this moment may be from before.
                known.privacy_tick, known.doubted_at = _UNTOLD, self._all_doubted_at
        return known
