"""Stop asking a Redis that does not answer: one caller tries now and again, the rest don't wait.

Without I/O of its own; `Link` and `AsyncLink` tell it what became of their calls.
"""

import random
import threading
import time
from collections.abc import Callable
from enum import StrEnum

_FAILURES_MAX = 3
_PAUSE_S_MIN = 0.25
_PAUSE_S_MAX = 2.0


class BreakerState(StrEnum):
    """Whether calls are let through."""

    CLOSED = "closed"  # all of them
    OPEN = "open"  # none, before the pause is over
    HALF_OPEN = "half_open"  # one is on its way, to see whether the server is back


class Breaker:
    """Opens after some calls in a row without an answer; closes with the first answer.

    The pauses between trials double, up to a limit, and are jittered, so that many processes don't
    come back all at once. Safe for several threads.

    Args:
        failures_max: calls in a row without an answer after which it opens.
        pause_s: the first and the longest pause, in seconds.
        told: called with each state that it comes to be in.
        clock: monotonic seconds.
        jitter: a number from 0 to 1; a pause is cut by up to half.
    """

    def __init__(
        self,
        *,
        failures_max: int = _FAILURES_MAX,
        pause_s: tuple[float, float] = (_PAUSE_S_MIN, _PAUSE_S_MAX),
        told: Callable[[BreakerState], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._failures_max = failures_max
        self._pause_s_min, self._pause_s_max = pause_s
        self._told = told or _nobody
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._retry_at = 0.0

    @property
    def state(self) -> BreakerState:
        """What becomes of the next call."""
        return self._state

    @property
    def failures(self) -> int:
        """Calls in a row that got no answer."""
        return self._failures

    @property
    def retry_s(self) -> float:
        """Seconds until a call is let through; 0 where one is at once."""
        if self._state is BreakerState.CLOSED:
            return 0.0
        return max(0.0, self._retry_at - self._clock())

    def admit(self) -> bool:
        """Whether a call may be made now.

        Of the calls after a pause one is let through. Where it never tells what became of it, say
        because it was cancelled, another one is after the next pause.
        """
        if self._state is BreakerState.CLOSED:
            return True
        with self._lock:
            if self._clock() < self._retry_at:
                return False
            self._turn(BreakerState.HALF_OPEN)
            self._pause()
            return True

    def succeeded(self) -> None:
        """A call was answered."""
        if self._failures == 0:
            return
        with self._lock:
            self._failures = 0
            self._turn(BreakerState.CLOSED)

    def failed(self) -> None:
        """A call got no answer."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._failures_max:
                self._turn(BreakerState.OPEN)
                self._pause()

    def _turn(self, state: BreakerState) -> None:
        if state is not self._state:
            self._state = state
            self._told(state)

    def _pause(self) -> None:
        doublings = min(max(0, self._failures - self._failures_max), 30)
        pause_s = min(self._pause_s_max, self._pause_s_min * 2.0**doublings)
        self._retry_at = self._clock() + pause_s * (1 - self._jitter() / 2)


def _nobody(_state: BreakerState) -> None:
    return None
