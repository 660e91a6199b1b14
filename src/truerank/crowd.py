"""How many use a pool of connections to PostgreSQL, and why somebody got none."""

import threading
import time
from collections import deque

from truerank.errors import Busy, DatabaseUnavailable, TruerankError

FULL = "as many ask already as may"
Refusals = deque[str]  # why the last connection was not made

_KEPT_PART = 5  # one connection of so many is for what every reader needs: boards, seasons, names
_BESIDE_S = 1.0


class Crowd:
    """Those who have a connection of one pool. Safe for several threads.

    Args:
        pool_max: connections that the pool may have.
        wait_s: how long one is waited for.
    """

    def __init__(self, pool_max: int, wait_s: float) -> None:
        self.yielding_max = max(1, pool_max - max(1, pool_max // _KEPT_PART))
        self._pool_max = pool_max
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._lent = 0
        self._answered_at = time.monotonic()

    def lent(self) -> None:
        """Note that somebody has a connection."""
        with self._lock:
            self._lent += 1

    def returned(self, *, answered: bool) -> None:
        """Note that somebody gave one back, and whether the server had answered."""
        with self._lock:
            self._lent -= 1
            if answered:
                self._answered_at = time.monotonic()

    def no_connection(self, exc: Exception, refusals: Refusals, *, full: bool) -> TruerankError:
        """The error of who waited in vain.

        Args:
            exc: as the pool tells it.
            refusals: why connections were not made.
            full: those who yield are as many as may be, whether or not all connections are taken.
        """
        answers = self._answered_at >= time.monotonic() - self._wait_s - _BESIDE_S
        if answers and not refusals and (full or self._lent >= self._pool_max):
            return Busy("PostgreSQL answers as many of this process as it may; try again")
        # The pool only says that it took too long. What the driver says begins with addresses.
        why = [
            line for told in refusals for line in told.rpartition("failed: ")[2].splitlines()[:1]
        ]
        return DatabaseUnavailable(": ".join((str(exc), *why)))
