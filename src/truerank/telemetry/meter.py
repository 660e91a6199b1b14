"""What a process counts while it works, told to whoever wants to know; by default to nobody.

Everything that works is handed a `Meter`. This one forgets; `truerank.telemetry.metrics.Metrics`
keeps numbers for Prometheus. Methods are called on hot paths: they must be quick, and never raise.
"""

import time
from collections.abc import Iterable

from truerank.errors import (
    Busy,
    Contended,
    DatabaseUnavailable,
    ProjectionUnavailable,
    ProjectionUnsafe,
    SchemaMismatch,
)
from truerank.model import Receipt

# Not what a caller asked wrongly, but what the installation could not do.
_FAILURES = (
    Busy,
    Contended,
    DatabaseUnavailable,
    ProjectionUnavailable,
    ProjectionUnsafe,
    SchemaMismatch,
)


class Meter:
    """Listens, and keeps nothing."""

    def redis_answered(self, call: str, seconds: float) -> None:
        """One round trip to Redis ended after so many seconds.

        Args:
            call: the script, or the command in capitals; of several in one trip the first.
            seconds: as the caller saw it, with what the network took.
        """

    def script_replied(self, script: str, reply: str) -> None:
        """A script was answered, in the words of `truerank.projection.scripts`, or `error`."""

    def tick_taken(self) -> None:
        """A worker committed a tick."""

    def batch_read(self, standings: int) -> None:
        """A worker read a batch of so many changed standings from the outbox; 0: none."""

    def leases_held(self, groups: int) -> None:
        """A worker holds so many groups now."""

    def ring_turned(self, outcome: str) -> None:
        """A worker tried to turn the ring of segments: `turned`, `fresh`, `busy` or `unread`."""

    def standings_compared(self, kind: str, number: int) -> None:
        """So many standings of the projection were compared with the source: `current`, or why not.

        Args:
            kind: as `truerank.repair.judging.Kind`.
            number: of standings.
        """

    def drift_met(self, what: str, number: int) -> None:
        """So many differences were `repaired`, or were of rankings and copies as such: `other`."""

    def breaker_changed(self, state: str) -> None:
        """The breaker before Redis is now `closed`, `half_open` or `open`."""

    def copy_ended(self, cause: str, outcome: str) -> None:
        """A copy that was being filled became live, or was given up.

        Args:
            cause: why it was begun: asked, schedule, lost, damaged, pruned, dense or parked; or
                back, where readers went back to the copy before.
            outcome: `switched`, or the code of the error.
        """

    def delivery_ended(self, outcome: str) -> None:
        """An attempt to deliver ended: `delivered`, `failed`, `parked` or `cancelled`."""

    def failed(self, part: str, code: str) -> None:
        """Something failed that should not.

        Args:
            part: `worker`, `upkeep`, `read`, `command` or `hints`.
            code: of the error, as in the reference.
        """

    def read_answered(self, source: str, consistency: str) -> None:
        """A page was read.

        Args:
            source: which store answered.
            consistency: what was asked for, `insisted` where the reader named the store,
                `not_kept` where the projection never counts as asked, or `history`. Anything but
                these, `authoritative` and `settled` with the database is a fallback.
        """

    def live_checked(self, outcome: str) -> None:
        """Both sources were asked what was read: `equal`, `different` or `unjudged`."""

    def page_given(self, outcome: str) -> None:
        """A page that may be held was asked for: `held`, `joined` or `read`."""

    def command_answered(self, outcome: str, code: str | None) -> None:
        """An event was applied, a duplicate, in conflict, or refused with a code."""

    def request_answered(self, route: str, status: int, seconds: float) -> None:
        """An HTTP request was answered, or its stream ended."""

    def streams_open(self, change: int) -> None:
        """So many more live streams are open than before."""

    def commands_answered(self, receipts: Iterable[Receipt]) -> None:
        """Several events were answered; each is told to `command_answered`."""
        for receipt in receipts:
            self.command_answered(receipt.outcome, receipt.code)

    def timing(self, call: str) -> "Timing":
        """Tell `redis_answered` how long the block took, however it ended."""
        return Timing(self, call)

    def watching(self, part: str) -> "Watching":
        """Tell `failed` of what the installation could not do in the block; it is raised on."""
        return Watching(self, part)


class Timing:
    """A block whose time is told; see `Meter.timing`."""

    __slots__ = ("_began", "_call", "_meter")

    def __init__(self, meter: Meter, call: str) -> None:
        self._meter = meter
        self._call = call

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._meter.redis_answered(self._call, time.monotonic() - self._began)


class Watching:
    """A block whose failures are told; see `Meter.watching`."""

    __slots__ = ("_meter", "_part")

    def __init__(self, meter: Meter, part: str) -> None:
        self._meter = meter
        self._part = part

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, _FAILURES):
            self._meter.failed(self._part, exc.reason)
