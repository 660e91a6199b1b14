"""When to try again what failed, and which groups to leave to others. Without I/O of its own."""

import random
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

_PAUSE_S_MIN = 0.02
_PAUSE_S_MAX = 1.0
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class _Case:
    since: float
    refusals: int
    pause_until: float


class Trouble:
    """The groups whose calls were refused since the last one that was carried out.

    Two workers on one group refuse each other: pauses that are jittered let one get through.

    Args:
        clock: monotonic seconds.
        jitter: a number from 0 to 1, by which a pause is multiplied.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._cases: dict[int, _Case] = {}

    def refused(self, group: int) -> None:
        """A call for this group was refused."""
        now = self._clock()
        case = self._cases.setdefault(group, _Case(now, 0, now))
        pause_s = min(_PAUSE_S_MAX, _PAUSE_S_MIN * 2.0 ** min(case.refusals, 30))
        case.refusals += 1
        case.pause_until = now + pause_s * self._jitter()

    def served(self, group: int) -> None:
        """A call for this group was carried out."""
        self._cases.pop(group, None)

    def keep(self, groups: Collection[int]) -> None:
        """Others see to all groups but these."""
        self._cases = {g: case for g, case in self._cases.items() if g in groups}

    def rested(self, groups: Iterable[int]) -> set[int]:
        """Those of some groups with which to go on."""
        now = self._clock()
        return {g for g in groups if g not in self._cases or self._cases[g].pause_until <= now}

    def hopeless(self, limit_s: float) -> set[int]:
        """The groups that were refused for so long, and never served."""
        now = self._clock()
        return {g for g, case in self._cases.items() if now - case.since >= limit_s}


class Backoff:
    """Pauses after failures in a row, ever longer, and jittered: many workers fail at once.

    Args:
        jitter: a number from 0 to 1; a pause is cut by up to half.
    """

    def __init__(self, *, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._failures = 0

    def failed(self) -> float:
        """Seconds to wait after one more failure."""
        pause_s = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        return pause_s * (1 - self._jitter() / 2)

    def succeeded(self) -> None:
        """Something worked: the next pause is the shortest."""
        self._failures = 0
