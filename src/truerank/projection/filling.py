"""Bring new copies to where readers can read them: filled, proven, and switched to."""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import structlog
from redis.exceptions import ResponseError

from truerank.crashpoints import crashpoint
from truerank.errors import (
    MemoryShort,
    NoWayBack,
    ProjectionUnavailable,
    RebuildCheckFailed,
    RebuildError,
)
from truerank.outbox.ticks import Connection, Part, Tick
from truerank.projection.copies import Copy
from truerank.projection.headroom import is_out_of_memory
from truerank.projection.held import Held, fill_call, fill_calls
from truerank.projection.mending import Mending
from truerank.projection.orders import Order
from truerank.projection.pace import Pace
from truerank.projection.poison import is_poison
from truerank.projection.proof import Proof
from truerank.projection.scripts import FillReply
from truerank.projection.stock import TRIES_MAX
from truerank.steps import ScriptCall

_CHUNK_ROWS_MAX = 8000  # read at once for all copies that are filled without a pause
_SCAN = """
    SELECT ranking, key_bytes, packed, equal_bytes, last_member
    FROM truerank.scan_group(%s::smallint, %s, %s, %s)"""


class Filling(Mending):
    """A stock whose copies become live."""

    def fill(self) -> list[Part]:
        """Bring one chunk of its scan into each copy that is being filled; return the rows."""
        warming = [
            held
            for held in self.held
            if held.warming and held.copy.scan != "done" and held.copy.group not in self.unread
        ]
        slow = self._throttled(warming)
        fast = [held for held in warming if held not in slow]
        slow = slow[:1] if self._pace.pause_s == 0 else []  # one after the other
        filled = self._fill(fast, self._chunk_rows(len(fast)), self._rows_max)
        if slow:
            began = time.monotonic()
            filled += self._fill(slow, self._pace.rows, self._pace.rows, pace=self._pace)
            self._pace.worked(time.monotonic() - began)
        return filled

    def _chunk_rows(self, copies: int) -> int:
        """Standings of each copy that are read at once: a lease is renewed between two steps."""
        return min(self._scan_rows_max, max(self._rows_max, _CHUNK_ROWS_MAX // max(1, copies)))

    def _fill(
        self,
        warming: Sequence[Held],
        scan_rows_max: int,
        call_rows_max: int,
        *,
        pace: Pace | None = None,
    ) -> list[Part]:
        if not warming:
            return []
        read = [(held, *scan_chunk(self._conn, held.copy, scan_rows_max)) for held in warming]
        tick = self._tick()  # after the chunks were read: it covers every row in them
        crashpoint("chunk_covered")
        filled: list[Part] = []
        for held, parts, position in read:
            sound = self._sound(held, parts, "fill", self._fill_probe(held, tick))
            if sound is None:
                continue
            keys = self.copies.group(held.copy.group)
            calls = fill_calls(held, keys, sound, position, tick, rows_max=call_rows_max)
            began = time.monotonic()
            replies, _ = self._link.calls([call for call, _ in calls])
            if pace is not None:
                rows = sum(len(part.rows) for part in sound)
                pace.called(rows, time.monotonic() - began)
            crashpoint("chunk_applied")
            if self._take_fill_replies(held, calls, replies, tick):
                filled += parts
                held.scanned += sum(len(part.rows) for part in parts)
                if position == "done":
                    crashpoint("scan_done")
        return filled

    def _take_fill_replies(
        self,
        held: Held,
        calls: Sequence[tuple[ScriptCall, str]],
        replies: Sequence[object],
        tick: Tick,
    ) -> bool:
        """Note how far the scan of a copy is; whether the whole chunk was taken."""
        for (_, position), reply in zip(calls, replies, strict=True):
            if is_out_of_memory(reply):
                self.give_up(held, MemoryShort("Redis ran out of memory"), for_good=True)
                return False
            if isinstance(reply, ResponseError):
                if not is_poison(reply):
                    raise ProjectionUnavailable(f"fill: {reply}") from reply
                self.suspect(held, "fill")
                return False
            if not isinstance(reply, list) or reply[0] != FillReply.APPLIED:
                self.unread.add(held.copy.group)
                return False
            if reply[2]:
                self.refill(held, reply[2])
                return False
            held.copy = replace(
                held.copy,
                scan=position,
                covered=f"{tick.id}:{tick.nonce}",
                high=tick.snapshot if position == "done" else "",
            )
        return True

    def _fill_probe(self, held: Held, tick: Tick) -> Callable[[Sequence[Part]], ScriptCall]:
        keys = self.copies.group(held.copy.group)
        scan = held.copy.scan
        return lambda tried: fill_call(held, keys, tried, (scan, scan), tick)

    def _is_proven(self, held: Held, rows_max: int) -> bool:
        """Go on comparing a copy with the source; whether all was compared, and is right."""
        name = held.copy.generation
        proof = self._proofs.get(name)
        if proof is None:
            left_out = self.parking.left_out(name)
            proof = self._proofs[name] = Proof(self._conn, self._link, self.copies, left_out)
        throttled = bool(self._throttled([held]))
        if throttled and self._pace.pause_s > 0:
            return False
        began = time.monotonic()
        compared = proof.look(held, self._pace.rows * 2 if throttled else rows_max)
        if throttled and compared:
            self._pace.worked(time.monotonic() - began)
        if proof.wrong is not None:
            self.give_up(held, RebuildCheckFailed(f"group {held.copy.group}: {proof.wrong}"))
        return proof.done

    def switch(self) -> None:
        """Let readers read every copy that has become whole, and is what the source says."""
        live = {held.copy.group: held for held in self.held if held.live}
        whole = [
            held
            for held in self.held
            if held.warming and held.copy.warm and held.copy.group not in self.unread
        ]
        rows_max = self._chunk_rows(len(whole))
        warm = [held for held in whole if self._is_proven(held, rows_max)]
        if warm:
            crashpoint("copy_proven")
        back = [
            held
            for held in self.held
            if held.former
            and held.copy.group in live
            and held.copy.group not in self.unread
            and (order := self._orders.of(held.copy.group)) is not None
            and order.back
            and order.generation == held.copy.generation
        ]
        self._switch([*warm, *back], live)

    def _switch(self, wanted: Sequence[Held], live: Mapping[int, Held]) -> None:
        if not wanted:
            return
        pairs = [
            (held.copy, live[held.copy.group].copy if held.copy.group in live else None)
            for held in wanted
        ]
        switched = self.copies.switch(self._conn, pairs)
        former = self.copies.formers(self._conn, sorted(switched))
        for held in wanted:
            group = held.copy.group
            if group not in switched:
                if held.warming:
                    self.unread.add(group)
                continue
            before = live.get(group)
            way_back = held.former
            held.live, held.former = True, False
            self._proofs.pop(held.copy.generation, None)
            self._setbacks.succeeded([group])
            self._link.meter.copy_ended("back" if way_back else held.cause, "switched")
            for other in [h for h in self.held if h.copy.group == group and h is not held]:
                if other.copy.generation in former:
                    other.live, other.former = False, True
                elif other is before:
                    self.held.remove(other)
                elif other.former:
                    self._retire_former(other)
            if before is not None:
                _log().info("switched", group=group, generation=held.copy.generation)
        self.parking.show(held.copy for held in wanted if held.live)

    def take_orders(self, groups: Collection[int], *, every_s: int, keep_ms: int) -> None:
        """See what was asked for of these groups, tell how far it is, and end what is over.

        Args:
            groups: that this worker leases.
            every_s: the age at which a copy is to be replaced; 0: at none.
            keep_ms: how long the copy before follows along then.
        """
        self._setbacks.keep(groups)
        if every_s:
            self._orders.ask_due(groups, every_s, keep_ms)
        warming = {held.copy.group: held for held in self.held if held.warming}
        self.note_filled()
        for order in self._orders.load(set(groups) - self.unread):
            if order.back:
                if not any(h.former and h.copy.generation == order.generation for h in self.held):
                    self._orders.fail(order, NoWayBack.code, "no copy before follows along")
            elif order.group not in warming:
                self._carry_out(order)
        over = self.copies.formers_over(self._conn, sorted(groups))
        for held in [held for held in self.held if held.copy.generation in over]:
            if held.former:
                self._retire_former(held)
                crashpoint("former_retired")

    def _carry_out(self, order: Order) -> None:
        """Begin a copy that was asked for; after some that came to nothing the request is over."""
        if order.tries >= TRIES_MAX:
            self._orders.fail(order, RebuildError.code, f"{order.tries} copies were lost")
        else:
            self._begin([order.group], cause=order.cause)

    def note_filled(self) -> None:
        """Tell how far copies are that are being filled.

        Source: `schema/functions/note_filled.sql`.
        """
        warming = [held for held in self.held if held.warming]
        if warming:
            names = [held.copy.generation for held in warming]
            checked = [self._proofs[n].rows if n in self._proofs else 0 for n in names]
            self._conn.execute(
                "SELECT truerank.note_filled(%s::uuid[], %s::bigint[], %s::bigint[])",
                (names, [held.scanned for held in warming], checked),
            )


def scan_chunk(conn: Connection, copy: Copy, rows_max: int) -> tuple[list[Part], str]:
    """Read the standings after the copy's scan position.

    Returns:
        The rows by ranking, and the position after them: `done` where nothing is left.

    Source: `schema/functions/scan_group.sql`.
    """
    ranking, member = json.loads(copy.scan) if copy.scan else (None, None)
    rows = conn.execute(_SCAN, (copy.group, ranking, member, rows_max), binary=True).fetchall()
    crashpoint("chunk_read")
    parts = [Part(*part) for *part, _ in rows]
    if sum(len(part.rows) for part in parts) < rows_max:
        return parts, "done"
    ranking, *_, last_member = rows[-1]
    return parts, json.dumps([ranking, last_member])


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
