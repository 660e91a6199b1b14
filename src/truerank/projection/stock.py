"""The copies that a worker holds, and how new ones are begun and given up."""

from collections.abc import Mapping, Sequence

import structlog

from truerank.crashpoints import crashpoint
from truerank.errors import HeadroomMissing, MemoryShort, TruerankError
from truerank.outbox import ticks
from truerank.outbox.ticks import Connection, Tick
from truerank.projection.copies import Copies
from truerank.projection.headroom import lacking
from truerank.projection.held import Held
from truerank.projection.link import Link
from truerank.projection.orders import Orders
from truerank.projection.pace import Pace
from truerank.projection.parking import Parking
from truerank.projection.proof import Proof
from truerank.projection.setbacks import Setbacks

TRIES_MAX = 3  # copies begun for one request


class Stock:
    """Which copies a worker holds, and which groups it has yet to read from Redis.

    Args:
        conn: in autocommit.
        link: to the server that holds the copies.
        prefix: of all keys.
        scan_rows_max: standings in one chunk of a scan.
        call_rows_max: standings in one call of a script.
        share_percent: of the time in which copies are filled beside live ones.
        publish: the command that gives hints.
    """

    def __init__(
        self,
        conn: Connection,
        link: Link,
        prefix: str,
        *,
        scan_rows_max: int,
        call_rows_max: int = 400,
        share_percent: float = 100,
        publish: str = "PUBLISH",
    ) -> None:
        self._conn = conn
        self._link = link
        self._scan_rows_max = scan_rows_max
        self._rows_max = min(call_rows_max, scan_rows_max)
        self._publish = publish
        self._pace = Pace(share_percent, self._rows_max)
        self._orders = Orders(conn)
        self._setbacks = Setbacks()
        self._proofs: dict[str, Proof] = {}
        self._epoch = ""
        self._suspects: set[tuple[str, str]] = set()  # generations for which a script failed
        self.copies = Copies(link, prefix)
        self.parking = Parking(conn, link, self.copies)
        self._rows_about: dict[str, int] = {}  # by generation
        self.held: list[Held] = []
        self.unread: set[int] = set()
        self.postponed: set[int] = set()  # without a copy, because those begun came to nothing

    @property
    def filling(self) -> bool:
        """Whether a copy is on its way to become live."""
        return any(held.warming for held in self.held)

    @property
    def pause_s(self) -> float | None:
        """Seconds until something is to be done for a copy on its way; None: nothing is."""
        warming = [h for h in self.held if h.warming and h.copy.group not in self.unread]
        if not warming:
            return None
        slow = self._throttled(warming)
        return self._pace.pause_s if len(slow) == len(warming) else 0.0

    def _throttled(self, warming: Sequence[Held]) -> list[Held]:
        """The copies that are filled with pauses: not where readers or who asked wait."""
        if self._pace.unthrottled:
            return []
        served = {held.copy.group for held in self.held if held.live}
        return [
            held
            for held in warming
            if held.copy.group in served
            and ((order := self._orders.of(held.copy.group)) is None or order.throttled)
        ]

    def _begin(
        self,
        groups: Sequence[int],
        due: Mapping[int, set[int]] | None = None,
        *,
        cause: str,
    ) -> None:
        """Start to fill a new copy of each group, without what is parked and not due.

        Not of those for which Redis lacks the memory, or whose last copies came to nothing. A way
        back ends with it: of no group there are to be three copies.
        """
        rested = self._setbacks.rested(groups)
        held = {held.copy.group for held in self.held}
        self.postponed |= set(groups) - rested - held
        groups = sorted(rested)
        sizes = self._sizes(groups)
        groups = self._with_headroom(groups, sizes, cause)
        for former in [h for h in self.held if h.former and h.copy.group in groups]:
            self._retire_former(former)
        if groups:
            crashpoint("before_begin")
            tick = self._tick()
            copies = self.copies.begin(
                self._conn, groups, self._epoch, tick, cause=cause, rows_about=sizes
            )
            if due is None:
                due = self.parking.due(groups)
            self.parking.begin(copies, due)
            self.held += [Held.of(copy, live=False, cause=cause) for copy in copies]
            self._rows_about |= {c.generation: sizes.get(c.group, 0) for c in copies}

    def _sizes(self, groups: Sequence[int]) -> dict[int, int]:
        """About how many standings groups have.

        Source: `schema/functions/group_sizes.sql`.
        """
        if not groups:
            return {}
        rows = self._conn.execute("SELECT * FROM truerank.group_sizes(%s::smallint[])", (groups,))
        return dict(rows.fetchall())

    def _with_headroom(
        self, groups: Sequence[int], sizes: Mapping[int, int], cause: str
    ) -> list[int]:
        """The groups for whose copies there is memory, one after the other."""
        live = {held.copy.group: held.copy for held in self.held if held.live}
        to_come = sum(
            max(0, self._rows_about.get(held.copy.generation, 0) - held.scanned)
            for held in self.held
            if held.warming
        )
        fitting: list[int] = []
        for group in groups:
            rows = sizes.get(group, 0)
            missing = lacking(self._link, self.copies, live.get(group), rows, to_come)
            if missing is None:
                fitting.append(group)
                to_come += rows
            else:
                self._fail(group, cause, HeadroomMissing(str(missing)), for_good=True)
        return fitting

    def _fail(self, group: int, cause: str, error: TruerankError, *, for_good: bool) -> None:
        """Tell that a copy came to nothing; the request for it is over, or another one follows.

        What nobody asked for is tried again by itself, ever later.
        """
        self._link.meter.copy_ended(cause, error.code)
        served = any(held.live and held.copy.group == group for held in self.held)
        order = self._orders.of(group)
        if order is not None and order.cause == cause and not order.back:
            _log().warning(error.code, group=group, cause=cause, reason=error.message)
            if for_good or order.tries >= TRIES_MAX:
                self._orders.fail(order, error.code, error.message)
            if served:
                return
        retry_s = self._setbacks.failed(group)
        _log().error(error.code, group=group, cause=cause, reason=error.message, retry_s=retry_s)
        if not served:
            self.postponed.add(group)

    def give_up(self, held: Held, error: TruerankError, *, for_good: bool = False) -> None:
        """Give up a copy that is being filled; the live one isn't touched."""
        self.held = [other for other in self.held if other is not held]
        self._proofs.pop(held.copy.generation, None)
        self.copies.retire(self._conn, [(held.copy.group, held.copy.generation)])
        self._fail(held.copy.group, held.cause, error, for_good=for_good)

    def run_short(self) -> bool:
        """Redis refused a write for want of memory: give up all that is being filled.

        Returns:
            Whether there was something to give up.
        """
        warming = [held for held in self.held if held.warming]
        for held in warming:
            self.give_up(held, MemoryShort("Redis ran out of memory"), for_good=True)
        return bool(warming)

    def _retire_former(self, held: Held) -> None:
        """There is no way back to a copy that follows along no more."""
        self.held = [other for other in self.held if other is not held]
        self.copies.retire(self._conn, [(held.copy.group, held.copy.generation)])

    def abandon(self, broken: Sequence[Held]) -> None:
        """Give up copies that nothing can be applied to; new ones are begun."""
        if not broken:
            return
        _log().error("copies_broken", groups=[held.copy.group for held in broken])
        self.copies.hide([held.copy.group for held in broken if held.live])
        self.held = [held for held in self.held if held not in broken]
        self.copies.retire(self._conn, [(h.copy.group, h.copy.generation) for h in broken])
        self.unread |= {held.copy.group for held in broken}

    def _tick(self) -> Tick:
        tick = ticks.tick_now(self._conn)
        self._link.meter.tick_taken()
        return tick


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
