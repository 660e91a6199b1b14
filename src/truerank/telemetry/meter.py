"""What a process counts while it works, told to whoever wants to know; by default to nobody.

Everything that works is handed a `Meter`. This one forgets; `truerank.telemetry.metrics.Metrics`
keeps numbers for Prometheus. Methods are called on hot paths: they must be quick, and never raise.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

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

    def breaker_changed(self, state: str) -> None:
        """The breaker before Redis is now `closed`, `half_open` or `open`."""

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
            consistency: what was asked for, or `insisted` where the reader named the store.
                Anything but that, `authoritative` and `settled` with the database is a fallback.
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

    @contextmanager
    def timing(self, call: str) -> Iterator[None]:
        """Tell `redis_answered` how long the block took, however it ended."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.redis_answered(call, time.monotonic() - began)

    @contextmanager
    def watching(self, part: str) -> Iterator[None]:
        """Tell `failed` of what the installation could not do in the block; it is raised on."""
        try:
            yield
        except _FAILURES as exc:
            self.failed(part, exc.reason)
            raise
