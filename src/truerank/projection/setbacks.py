"""Which groups are not to be filled anew just yet, because that failed. Without I/O of its own."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

_PAUSE_S = (1.0, 10.0, 60.0, 600.0)


@dataclass(slots=True)
class _Setback:
    failures: int
    until: float


class Setbacks:
    """Failures in a row by group, and when to try again: ever later.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._groups: dict[int, _Setback] = {}

    def failed(self, group: int) -> float:
        """A copy of this group came to nothing; return the seconds until the next is begun."""
        setback = self._groups.setdefault(group, _Setback(0, 0.0))
        pause_s = _PAUSE_S[min(setback.failures, len(_PAUSE_S) - 1)]
        setback.failures += 1
        setback.until = self._clock() + pause_s
        return pause_s

    def succeeded(self, groups: Iterable[int]) -> None:
        """Copies of these groups became live."""
        for group in groups:
            self._groups.pop(group, None)

    def rested(self, groups: Iterable[int]) -> set[int]:
        """Those of some groups that may be filled now."""
        now = self._clock()
        return {g for g in groups if g not in self._groups or self._groups[g].until <= now}

    def keep(self, groups: Collection[int]) -> None:
        """Others see to all groups but these."""
        self._groups = {g: setback for g, setback in self._groups.items() if g in groups}
