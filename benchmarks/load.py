"""The events that both sides are given, and how fast."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

MEMBER_CHARS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What each client process submits."""

    members: int  # drawn from, all equally likely
    seconds: float  # then no further event is submitted
    seed: str  # differs from round to round, or event ids would repeat
    rate: float | None = None  # events/s; None: as fast as the answers come


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What one client process did. Times are of the monotonic clock, in seconds."""

    began: float
    ended: float
    events: int
    total: int  # sum of the values
    token: str = ""  # of its last write, where the pipeline gives one


class Events:
    """A seeded stream of events: a random UUID as text, a member, a value from 1 to 100."""

    def __init__(self, seed: str, members: int) -> None:
        self._random = random.Random(seed)
        self._members = range(members)
        self._values = range(1, 101)

    def draw(self, count: int) -> Iterator[tuple[str, str, int]]:
        """The next events, many at once: what a client does is to count, not the dice."""
        return zip(
            self.event_ids(count),
            map(member_id, self._random.choices(self._members, k=count)),
            self._random.choices(self._values, k=count),
            strict=True,
        )

    def event_ids(self, count: int) -> list[str]:
        """Random UUIDs."""
        digits = self._random.randbytes(16 * count).hex()
        return [
            f"{digits[i : i + 8]}-{digits[i + 8 : i + 12]}-{digits[i + 12 : i + 16]}"
            f"-{digits[i + 16 : i + 20]}-{digits[i + 20 : i + 32]}"
            for i in range(0, len(digits), 32)
        ]


class Pace:
    """Evenly spaced calls, or calls one after the other, until the time is over.

    Args:
        seconds: how long.
        calls_per_s: None: one after the other.
        phase: how far into the first interval the first call is due, from 0 to 1, so that several
            clients don't all call at the same moment.
    """

    def __init__(self, seconds: float, calls_per_s: float | None, phase: float = 0.0) -> None:
        self.began = time.monotonic()
        self._ends = self.began + seconds
        self._interval = 0.0 if calls_per_s is None else 1 / calls_per_s
        self._due = self.began + phase * self._interval

    def goes_on(self) -> bool:
        """Wait until the next call is due; False where that is after the end."""
        now = time.monotonic()
        if self._due > now:
            time.sleep(min(self._due, self._ends) - now if self._ends > now else 0)
        self._due += self._interval
        return time.monotonic() < self._ends


def member_id(number: int) -> str:
    """The ten characters that name a member."""
    return f"m{number:09d}"
