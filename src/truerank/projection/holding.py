"""The copies that a worker holds: adopted from what Redis has, and examined when ticks are missing.

A copy whose call was refused is put among the unread: only what Redis says now tells where to go
on. Filling a copy, repairing one, and following a new epoch are the same path.
"""

import re
from collections.abc import Collection, Sequence

import structlog

from truerank.errors import SourceSuperseded
from truerank.outbox.ticks import Batch
from truerank.projection.copies import Copy
from truerank.projection.filling import Filling
from truerank.projection.held import Held

_EPOCH = re.compile(r"[0-9a-f]{32}")


class Holding(Filling):
    """Which copies a worker holds, and which groups it has yet to read from Redis.

    The classes below it see to what becomes of them: `Stock` begins copies and gives them up,
    `Mending` replaces what is damaged, `Filling` makes new ones live.
    """

    source = ""  # cluster and timeline of the WAL
    _life = ""  # of the server, as last noted
    _lives = ""

    def adopt(self, unread: Collection[int]) -> None:
        """Read from Redis what there is of some unread groups, and begin what there isn't.

        Raises:
            SourceSuperseded: a server that was promoted later feeds a copy.
        """
        unread = set(unread) | self._setbacks.rested(self.postponed)
        if not unread:
            return
        self.postponed -= unread
        row = self._conn.execute(
            "SELECT truerank.current_epoch(), truerank.wal_source()"
        ).fetchone()
        assert row is not None, "the functions return one row"
        self._epoch, self.source = row[0].hex, row[1]
        groups = sorted(unread)
        self.held = [held for held in self.held if held.copy.group not in unread]
        self.parking.load(groups)
        self._orders.load({held.copy.group for held in self.held} | set(groups))
        pointed = self.copies.pointed(groups)
        live = self.copies.read(list(pointed.items()))
        whole = {(copy.group, copy.generation) for copy in live}
        others = self.copies.read(
            [
                (group, name)
                for group, name, state in self.copies.listed(self._conn, groups)
                if (group, name) not in whole and state in {"warming", "live", "former"}
            ]
        )
        self._check_source([*live, *others])
        self._meet_epochs({copy.epoch for copy in live})
        # Versions of another epoch mean nothing: better no answer than an invented one.
        strange = [copy for copy in live if copy.epoch != self._epoch]
        self.copies.hide([copy.group for copy in strange])
        # Not only those listed: a source that was set back doesn't know of them.
        self.copies.retire(self._conn, [(copy.group, copy.generation) for copy in strange])
        live = [copy for copy in live if copy not in strange]
        # A worker may have ended between its switch and the note of it.
        self.copies.note_live(self._conn, live)
        self._sort(groups, live, [copy for copy in others if copy.epoch == self._epoch])
        mine = [held for held in self.held if held.copy.group in unread]
        broken = {copy.generation for copy in self.parking.adopt([held.copy for held in mine])}
        self.abandon([held for held in mine if held.copy.generation in broken])
        missing = set(groups) - {held.copy.group for held in self.held}
        self.postponed |= missing - self._setbacks.rested(missing)
        self._begin(sorted(missing), cause="lost")
        self.unread -= set(groups)
        names = {held.copy.generation for held in self.held}
        self.parking.keep(names)
        self._suspects = {each for each in self._suspects if each[0] in names}
        self._proofs = {name: proof for name, proof in self._proofs.items() if name in names}

    def _sort(self, groups: Sequence[int], live: Sequence[Copy], others: Sequence[Copy]) -> None:
        """Take in hand what is of use of the copies that Redis has; the rest is retired."""
        served = {copy.group for copy in live}
        names = {copy.generation for copy in live}
        states = {
            name: (group, state)
            for group, name, state in self.copies.listed(self._conn, groups)
            if name not in names
        }
        self.held += [Held.of(copy, live=True) for copy in live]
        found = {copy.generation: copy for copy in others}
        fillings = self.copies.fillings(self._conn, list(found))
        kept: set[str] = set()
        for name, (group, state) in states.items():
            copy = found.get(name)
            # One that was live, or followed it, becomes so again where the live one is lost.
            if copy is None or not (state in {"warming", "former"} or group not in served):
                continue
            kept.add(name)
            cause, scanned = fillings.get(name, ("lost", 0))
            former = state == "former" and group in served
            self.held.append(Held.of(copy, live=False, former=former, cause=cause, scanned=scanned))
        self.copies.retire(
            self._conn, [(group, name) for name, (group, _) in states.items() if name not in kept]
        )

    def _check_source(self, copies: Sequence[Copy]) -> None:
        """Refuse to go on where a server of the same cluster, promoted later, has fed a copy.

        Not where this source has left the copy's epoch behind: then it is the one that goes on.

        Raises:
            SourceSuperseded: there are two primaries, and this is the one that was replaced.
        """
        cluster, timeline = _named_source(self.source)
        for copy in copies:
            theirs, later = _named_source(copy.source)
            if theirs == cluster and later > timeline and not self._has_left(copy.epoch):
                raise SourceSuperseded(
                    f"group {copy.group} is fed from timeline {later} of this cluster, in epoch"
                    f" {copy.epoch}, and the database is still on {timeline}: two primaries"
                )

    def _has_left(self, epoch: str) -> bool:
        if not _EPOCH.fullmatch(epoch):
            return False
        found = self._conn.execute("SELECT truerank.past_epochs(%s::uuid[])", ([epoch],))
        return found.fetchone() is not None

    def _meet_epochs(self, epochs: Collection[str]) -> None:
        """Begin a new epoch if copies are of epochs that this source knows nothing of."""
        strange = [epoch for epoch in epochs if epoch != self._epoch and _EPOCH.fullmatch(epoch)]
        if not strange:
            return
        row = self._conn.execute("SELECT truerank.meet_epochs(%s::uuid[])", (strange,)).fetchone()
        assert row is not None, "the function returns one row"
        if row[0].hex != self._epoch:
            _log().error("source_set_back", epoch=self._epoch, new_epoch=row[0].hex)
            self._epoch = row[0].hex
            # Copies that were adopted before are of the epoch that has just ended.
            self.unread |= {held.copy.group for held in self.held}
            self.held = []

    def left_behind(self, batch: Batch) -> bool:
        """Whether a new epoch has begun since these copies were adopted.

        By another worker, or because behind a pooler there is another cluster by now.
        """
        if batch.life != self._life:
            row = self._conn.execute("SELECT truerank.current_epoch()").fetchone()
            assert row is not None, "the function returns one row"
            if row[0].hex != self._epoch:
                return True
        return not batch.life.startswith(self._epoch[:8])

    def lives(self, batch: Batch, since: str) -> str:
        """The lives of the server to note in copies whose cursor, at `since`, a batch proves."""
        if batch.life != self._life:
            row = self._conn.execute(
                "SELECT truerank.note_life(%s::pg_snapshot)", (since,)
            ).fetchone()
            assert row is not None, "the function returns one row"
            self._life, self._lives = batch.life, row[0]
        return self._lives

    def examine(self, together: list[Held], batch: Batch, groups: set[int]) -> None:
        """Decide why ticks are missing: pruned means a new copy, regressed a new epoch."""
        pruned = [held for held in together if held.base < batch.floor_tick]
        if not pruned:
            row = self._conn.execute(
                "SELECT truerank.new_epoch(%s, %s)", (self._epoch, "ticks are gone")
            ).fetchone()
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
        left = {held.copy.group for held in self.held if not held.former}
        self._begin(sorted(pruned_groups - left), cause="pruned")


def _named_source(text: str) -> tuple[str, int]:
    cluster, _, timeline = text.partition(":")
    return cluster, int(timeline) if timeline.isdecimal() else 0


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
