"""Whether PostgreSQL answers, as one client knows it: readers needn't all wait to find out."""

import math
import threading
import time
from itertools import count

from truerank.errors import Busy, DatabaseUnavailable, TruerankError
from truerank.steps import Steps, T, hurried

_AWAY_S = 5.0
_SLOW_S = 0.5  # a question that takes longer may be one to a server that stands still
_HURRY_S = 2.0


class Reach:
    """What one client met when it last asked. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._away_until: float | None = None  # it did not answer: not asked before this
        self._missed_at = -math.inf  # monotonic, in seconds
        self.away_since = -math.inf  # the same: when it was last found to have gone
        self._numbers = count()
        self._under_way: dict[int, float] = {}  # since when, the oldest first

    @property
    def away(self) -> bool:
        """Whether PostgreSQL did not answer when it was asked last."""
        return self._away_until is not None

    def missed(self) -> None:
        """Take in that PostgreSQL did not answer."""
        self._missed_at = time.monotonic()
        if self._away_until is None:
            self.away_since = self._missed_at
        self._away_until = self._missed_at + _AWAY_S

    def missed_since(self, began: float) -> bool:
        """Whether PostgreSQL was asked since then, in monotonic seconds, and did not answer."""
        return self._missed_at >= began

    @property
    def silent_since(self) -> float:
        """Since when PostgreSQL may not answer, in monotonic seconds; infinity: it does.

        What was good until a moment before somebody began to wait is what is being waited for.
        """
        with self._lock:
            if self._away_until is not None:
                return self.away_since
            return next(iter(self._under_way.values()), math.inf) - _SLOW_S

    def asks(self, good_until: float = math.inf) -> bool:
        """Whether to ask for what can be done without.

        While PostgreSQL is away every reader would wait for it: then one asks, now and again. While
        one waits for longer than an answer takes, others don't ask.

        Args:
            good_until: in monotonic seconds, of what is remembered of it: what was over long before
                somebody began to wait is asked for all the same, for PostgreSQL may just be slow.
        """
        now = time.monotonic()
        with self._lock:
            if self._away_until is not None:
                if now <= self._away_until:
                    return False
                self._away_until = now + _AWAY_S
            began = next(iter(self._under_way.values()), now)
            return now - began < _SLOW_S or good_until < began - _SLOW_S

    def asked(self, steps: Steps[T], *, hurry: bool = True) -> Steps[T]:
        """The same steps; how they end is remembered.

        Args:
            steps: that ask PostgreSQL.
            hurry: something else can be done without an answer: don't wait for long.

        Raises:
            DatabaseUnavailable, Busy: no answer; or what the steps raise.
        """
        with self._lock:
            number = next(self._numbers)
            self._under_way[number] = time.monotonic()
        try:
            answer = yield from (hurried(steps, _HURRY_S) if hurry else steps)
        except DatabaseUnavailable:
            self.missed()
            raise
        except Busy:
            raise  # of a server that wasn't asked nothing is known
        except TruerankError:
            self._away_until = None  # a refusal is an answer
            raise
        else:
            self._away_until = None
            return answer
        finally:
            with self._lock:
                del self._under_way[number]
