"""How much of a copy is filled at once, and how long that then pauses: readers come first.

While a script runs, Redis answers nobody. So the rows of a call are as many as take a fixed time,
measured as the worker sees it: where others keep Redis busy, calls get shorter by themselves. And
of all time only a share is worked, for a scan needs processors as well. Without I/O of its own.
"""

import time
from collections.abc import Callable

_CALL_S = 0.002  # that a script call may take
_ROWS_MIN = 50
_GROWTH_MAX = 1.5
_PAUSE_S_MAX = 1.0


class Pace:
    """The pace of all copies that one worker fills beside live ones.

    Args:
        share_percent: of the time in which to work; 100: without pauses, and in calls of all rows.
        rows_max: of one call.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        share_percent: float,
        rows_max: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = max(share_percent, 1.0) / 100
        self._rows_max = rows_max
        self._rows = float(min(rows_max, 2 * _ROWS_MIN))
        self._clock = clock
        self._due_at = 0.0

    @property
    def unthrottled(self) -> bool:
        """Whether nothing is held back."""
        return self._share >= 1

    @property
    def rows(self) -> int:
        """Standings that the next call may have."""
        return max(1, round(self._rows))

    @property
    def pause_s(self) -> float:
        """Seconds until the next call is due; 0: it is."""
        return max(0.0, self._due_at - self._clock())

    def called(self, rows: int, seconds: float) -> None:
        """A call of so many rows took so long, with the wait for its reply."""
        if rows < self._rows / 2:
            return  # the end of a scan: it tells little
        wanted = self._rows * min(_GROWTH_MAX, _CALL_S / max(seconds, 1e-6))
        self._rows = min(float(self._rows_max), max(float(_ROWS_MIN), wanted))

    def worked(self, seconds: float) -> None:
        """A chunk took so long altogether: pause in proportion."""
        self._due_at = self._clock() + min(_PAUSE_S_MAX, seconds * (1 / self._share - 1))
