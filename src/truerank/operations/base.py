"""What the operations of one client share."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from truerank.errors import Contended
from truerank.read.answers import Answers
from truerank.read.names import Names
from truerank.read.verdict import Expected
from truerank.settings import Settings
from truerank.steps import Pause, Query, Steps, T
from truerank.telemetry.meter import Meter

_TRIES_MAX = 5
_PAUSE_S_MAX = 0.05


class Base:
    """The prefix of the keys, and what was read of boards, seasons and generations.

    Args:
        settings: of the client.
        meter: told how reads and commands end; None: nobody is.
    """

    def __init__(self, settings: Settings, meter: Meter | None = None) -> None:
        self._prefix = settings.prefix
        self._meter = meter or Meter()
        self._expected = Expected(
            heartbeat_ms=settings.heartbeat_ms,
            segment_s=settings.segment_s,
            outbox_bytes_max=settings.outbox_bytes_max,
        )
        self._answers = Answers(settings)
        self._names = Names(settings.names_cache_ms)
        self._held_s = settings.cache_max_ms / 1000
        self._remembered_s = settings.board_cache_ms / 1000

    @property
    def answers(self) -> Answers:
        """Who answers this client's questions, with what it remembers."""
        return self._answers


def retried(attempt: Callable[[], Steps[T]]) -> Steps[T]:
    """Run steps that are one transaction; again where others were in the way."""
    for _ in range(_TRIES_MAX - 1):
        try:
            return (yield from attempt())
        except Contended:
            # Jitter parts those who were in each other's way.
            yield Pause(random.uniform(0, _PAUSE_S_MAX))  # noqa: S311 - no secret
    return (yield from attempt())


def query(sql: str, parameters: Sequence[Any]) -> Steps[list[tuple[Any, ...]]]:
    """Steps of one statement."""
    rows: list[tuple[Any, ...]] = yield Query(sql, parameters)
    return rows
