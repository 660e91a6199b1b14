"""The copies that a worker holds: adopted, begun, filled, and switched to.

A copy whose call was refused is put among the unread: only what Redis says now tells where to go
on. Filling a copy, repairing one, and following a new epoch are the same path.
"""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from truerank.outbox import ticks
from truerank.outbox.ticks import Batch, Connection, Part, Tick
from truerank.projection.copies import Copies
from truerank.projection.filling import scan_chunk
from truerank.projection.held import Held, fill_call
from truerank.projection.link import Link
from truerank.projection.scripts import FillReply


class Holding:
    """Which copies a worker holds, and which groups it has yet to read from Redis.

    Args:
        conn: in autocommit.
        link: to the server that holds the copies.
        prefix: of all keys.
        rows_max: standings in one chunk of a scan.
    """

    def __init__(self, conn: Connection, link: Link, prefix: str, *, rows_max: int) -> None:
        self._conn = conn
        self._link = link
        self._rows_max = rows_max
        self._epoch = ""
        self.copies = Copies(link, prefix)
        self.held: list[Held] = []
        self.unread: set[int] = set()

    @property
    def filling(self) -> bool:
        """Whether a copy is on its way to become live."""
        return any(not held.live for held in self.held)

    def adopt(self) -> None:
        """Read from Redis what there is of every group in `unread`, and begin what there isn't."""
        if not self.unread:
            return
        row = self._conn.execute("SELECT truerank.current_epoch()").fetchone()
        assert row is not None, "the function returns one row"
        self._epoch = row[0].hex
        groups = sorted(self.unread)
        self.held = [held for held in self.held if held.copy.group not in self.unread]
        pointed = self.copies.pointed(groups)
        live = self.copies.read(list(pointed.items()))
        listed = [
            (group, name, state)
            for group, name, state in self.copies.listed(self._conn, groups)
            if pointed.get(group) != name or all(copy.generation != name for copy in live)
        ]
        # One that was live becomes so again where only the pointer to it was lost.
        lost = set(groups) - {copy.group for copy in live}
        others = self.copies.read(
            [
                (group, name)
                for group, name, state in listed
                if state == "warming" or (state == "live" and group in lost)
            ]
        )
        # Versions of another epoch mean nothing: better no answer than an invented one.
        strange = [copy for copy in live if copy.epoch != self._epoch]
        self.copies.hide([copy.group for copy in strange])
        kept = [copy for copy in others if copy.epoch == self._epoch]
        names = {copy.generation for copy in kept}
        self.copies.retire(
            self._conn,
            [(copy.group, copy.generation) for copy in strange]
            + [(group, name) for group, name, _ in listed if name not in names],
        )
        # A worker may have ended between its switch and the note of it.
        self.copies.note_live(self._conn, [copy for copy in live if copy not in strange])
        self.held += [Held.of(copy, live=True) for copy in live if copy not in strange]
        self.held += [Held.of(copy, live=False) for copy in kept]
        self._begin(sorted(set(groups) - {held.copy.group for held in self.held}))
        self.unread.clear()

    def _begin(self, groups: Sequence[int]) -> None:
        """Start to fill a new copy of each group."""
        if groups:
            tick = self._tick()
            copies = self.copies.begin(self._conn, groups, self._epoch, tick)
            self.held += [Held.of(copy, live=False) for copy in copies]

    def _tick(self) -> Tick:
        tick = ticks.take_tick(self._conn, since=None, anyway=True)
        assert tick is not None, "a tick asked for anyway is always taken"
        return tick

    def refill(self, held: Held, rankings: Sequence[bytes]) -> None:
        """Fill a new copy in place of one whose rankings are damaged."""
        group = held.copy.group
        _log().warning("ranking_damaged", group=group, rankings=rankings, live=held.live)
        if not held.live:
            self.held = [other for other in self.held if other is not held]
            self.copies.retire(self._conn, [(group, held.copy.generation)])
        if all(other.live for other in self.held if other.copy.group == group):
            self._begin([group])

    def examine(self, together: list[Held], batch: Batch, groups: set[int]) -> None:
        """Decide why ticks are missing: pruned means a new copy, regressed a new epoch."""
        pruned = [held for held in together if held.base < batch.floor_tick]
        if not pruned:
            row = self._conn.execute("SELECT truerank.new_epoch(%s)", (self._epoch,)).fetchone()
            assert row is not None, "the function returns one row"
            _log().error("source_regressed", epoch=self._epoch, new_epoch=row[0].hex)
            self._epoch = row[0].hex
            self.unread |= groups
            return
        pruned_groups = {held.copy.group for held in pruned}
        _log().warning("cursor_pruned", groups=sorted(pruned_groups))
        self.held = [held for held in self.held if held not in pruned]
        self.copies.retire(
            self._conn, [(h.copy.group, h.copy.generation) for h in pruned if not h.live]
        )
        self._begin(sorted(pruned_groups - {held.copy.group for held in self.held}))

    def fill(self) -> list[Part]:
        """Bring one chunk of its scan into each copy that is being filled; return the rows."""
        warming = [held for held in self.held if held.copy.scan != "done"]
        if not warming:
            return []
        chunks = [scan_chunk(self._conn, held.copy, self._rows_max) for held in warming]
        tick = self._tick()  # after the chunks were read: it covers every row in them
        calls = [
            fill_call(held, self.copies.group(held.copy.group), parts, position, tick)
            for held, (parts, position) in zip(warming, chunks, strict=True)
        ]
        replies, _ = self._link.calls(calls)
        filled: list[Part] = []
        for held, (parts, position), reply in zip(warming, chunks, replies, strict=True):
            if not isinstance(reply, list) or reply[0] != FillReply.APPLIED:
                self.unread.add(held.copy.group)
                continue
            if reply[2]:
                self.refill(held, reply[2])
                continue
            filled += parts
            held.copy = replace(
                held.copy,
                scan=position,
                covered=f"{tick.id}:{tick.nonce}",
                high=tick.snapshot if position == "done" else "",
            )
        return filled

    def switch(self) -> None:
        """Let readers read every copy that has become whole."""
        warm = [
            held
            for held in self.held
            if not held.live and held.copy.warm and held.copy.group not in self.unread
        ]
        if not warm:
            return
        live = {held.copy.group: held for held in self.held if held.live}
        pairs = [
            (held.copy, live[held.copy.group].copy if held.copy.group in live else None)
            for held in warm
        ]
        switched = self.copies.switch(self._conn, pairs)
        for held in warm:
            group = held.copy.group
            if group not in switched:
                self.unread.add(group)
                continue
            held.live = True
            if group in live:
                self.held.remove(live[group])
                _log().info("switched", group=group, generation=held.copy.generation)


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
