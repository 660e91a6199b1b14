"""What the operations of one client share."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from truerank.errors import Contended, NotVisibleYet
from truerank.model import Token
from truerank.read.answers import Answers
from truerank.read.known import Known
from truerank.read.names import Names
from truerank.read.verdict import Expected
from truerank.read.waiting import wait_visible
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
        self._known = Known(settings)
        self._answers = Answers(settings, self._known)
        self._names = Names(settings.names_cache_ms, self._known.reach)
        self._held_s = settings.cache_max_ms / 1000
        self._remembered_s = settings.board_cache_ms / 1000

    @property
    def answers(self) -> Answers:
        """Who answers this client's questions."""
        return self._answers

    @property
    def known(self) -> Known:
        """What this client remembers of boards and seasons."""
        return self._known

    def _in_force(
        self,
        groups: Sequence[int],
        token: Token,
        timeout_s: float,
        *,
        doubted: Iterable[int] | None,
    ) -> Steps[bool]:
        """Wait until nobody is shown what was before a change of members; False: it is pending.

        Args:
            groups: that the projection shows the change in.
            token: of the change.
            timeout_s: how long to wait for the projection, in seconds.
            doubted: groups of which PostgreSQL is asked before each read while it is pending; None:
                all.
        """
        try:
            yield from wait_visible(groups, token, prefix=self._prefix, timeout_s=timeout_s)
        except NotVisibleYet:
            self._known.floors.doubt(doubted)
            return False
        # A server that missed the hint gives out what it holds until then.
        if self._held_s > 0:
            yield Pause(self._held_s)
        return True


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
