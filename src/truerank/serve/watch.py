"""What `/metrics` and the health checks ask both stores, once for all who ask within a second."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from truerank.read.status import Status, silent, with_problem
from truerank.read.verdict import deaf
from truerank.telemetry.metrics import Metrics

_KEPT_S = 1.0
_LOOK_S_MAX = 3.0


class Watch:
    """The numbers of this process, and a look at both stores that is at most a second old.

    Args:
        look: asks both stores.
        metrics: what this process counts.
        deaf: why the live streams of this process get no hints, or None.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[Status]],
        metrics: Metrics,
        deaf: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._deaf = deaf
        self.metrics = metrics
        self._look = look
        self._lock = asyncio.Lock()
        self._seen = silent()
        self._seen_at = -math.inf

    async def status(self) -> Status:
        """How both stores are; one that is away or silent is told, not raised."""
        async with self._lock:
            if time.monotonic() - self._seen_at >= _KEPT_S:
                try:
                    async with asyncio.timeout(_LOOK_S_MAX):
                        self._seen = await self._look()
                except TimeoutError:
                    self._seen = silent()
                self._seen_at = time.monotonic()
            error = self._deaf()
            if error is None or self._seen.redis_error is not None:
                return self._seen
            return with_problem(self._seen, deaf(error))
