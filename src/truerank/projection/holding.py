"""The copies that a worker holds: adopted, begun, filled, and switched to.

A copy whose call was refused is put among the unread: only what Redis says now tells where to go
on. Filling a copy, repairing one, and following a new epoch are the same path.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import structlog
from redis.exceptions import ResponseError

from truerank.crashpoints import crashpoint
from truerank.errors import ProjectionUnavailable, SourceSuperseded
from truerank.outbox import ticks
from truerank.outbox.ticks import Batch, Connection, Part, Tick
from truerank.projection.copies import Copies, Copy
from truerank.projection.filling import scan_chunk
from truerank.projection.held import Held, Stamp, fill_call, probe_call, probed
from truerank.projection.link import Link
from truerank.projection.parking import Parking
from truerank.projection.patrol import Patrol
from truerank.projection.poison import Refused, is_poison, misread, sift
from truerank.projection.scripts import FillReply
from truerank.steps import ScriptCall

_EPOCH = re.compile(r"[0-9a-f]{32}")


class Holding:
    """Which copies a worker holds, and which groups it has yet to read from Redis.

    Args:
        conn: in autocommit.
        link: to the server that holds the copies.
        prefix: of all keys.
        rows_max: standings in one chunk of a scan.
        publish: the command that gives hints.
    """

    def __init__(
        self, conn: Connection, link: Link, prefix: str, *, rows_max: int, publish: str = "PUBLISH"
    ) -> None:
        self._conn = conn
        self._link = link
        self._rows_max = rows_max
        self._publish = publish
        self._epoch = ""
        self._suspects: set[tuple[str, str]] = set()  # generations for which a script failed
        self.source = ""  # cluster and timeline of the WAL
        self._life = ""  # of the server, as last noted
        self._lives = ""
        self.copies = Copies(link, prefix)
        self.parking = Parking(conn, link, self.copies)
        self._patrol = Patrol(link, self.copies)
        self.held: list[Held] = []
        self.unread: set[int] = set()

    @property
    def filling(self) -> bool:
        """Whether a copy is on its way to become live."""
        return any(not held.live for held in self.held)

    def adopt(self, unread: Collection[int]) -> None:
        """Read from Redis what there is of some unread groups, and begin what there isn't.

        Raises:
            SourceSuperseded: a server that was promoted later feeds a copy.
        """
        if not unread:
            return
        row = self._conn.execute(
            "SELECT truerank.current_epoch(), truerank.wal_source()"
        ).fetchone()
        assert row is not None, "the functions return one row"
        self._epoch, self.source = row[0].hex, row[1]
        groups = sorted(unread)
        self.held = [held for held in self.held if held.copy.group not in unread]
        self.parking.load(groups)
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
        self._check_source([*live, *others])
        self._meet_epochs({copy.epoch for copy in live})
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
        mine = [held for held in self.held if held.copy.group in unread]
        broken = {copy.generation for copy in self.parking.adopt([held.copy for held in mine])}
        self.abandon([held for held in mine if held.copy.generation in broken])
        self._begin(sorted(set(groups) - {held.copy.group for held in self.held}))
        self.unread -= set(groups)
        names = {held.copy.generation for held in self.held}
        self.parking.keep(names)
        self._suspects = {each for each in self._suspects if each[0] in names}

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

    def _begin(self, groups: Sequence[int], due: Mapping[int, set[int]] | None = None) -> None:
        """Start to fill a new copy of each group, without what is parked and not due."""
        if groups:
            crashpoint("before_begin")
            tick = self._tick()
            copies = self.copies.begin(self._conn, groups, self._epoch, tick)
            if due is None:
                due = self.parking.due(groups)
            self.parking.begin(copies, due)
            self.held += [Held.of(copy, live=False) for copy in copies]

    def _tick(self) -> Tick:
        tick = ticks.take_tick(self._conn, since=None, anyway=True)
        assert tick is not None, "a tick asked for anyway is always taken"
        self._link.meter.tick_taken()
        return tick

    def refill(self, held: Held, rankings: Sequence[bytes]) -> None:
        """Fill a new copy in place of one whose rankings are damaged."""
        group = held.copy.group
        if not held.live and group in self.unread:
            return  # a script that failed left them so: another new copy would end the same
        _log().warning("ranking_damaged", group=group, rankings=rankings, live=held.live)
        if not held.live:
            self.held = [other for other in self.held if other is not held]
            self.copies.retire(self._conn, [(group, held.copy.generation)])
        if all(other.live for other in self.held if other.copy.group == group):
            self._begin([group])

    def retry(self, groups: Collection[int]) -> None:
        """Begin a new copy wherever a parked ranking is due again and none is on its way."""
        due = self.parking.due(groups)
        filling = {held.copy.group for held in self.held if not held.live}
        self._begin(sorted(due.keys() - filling - self.unread), due)

    def follow_dense(self) -> None:
        """Begin a new copy wherever dense counting was turned on or off since the last one."""
        known: dict[int, int] = {}
        for held in self.held:
            group, turns = held.copy.group, held.copy.dense_turns
            known[group] = max(turns, known.get(group, 0))
        wanted = self.copies.dense_turns(self._conn, sorted(known.keys() - self.unread))
        behind = {group for group, turns in wanted.items() if turns > known[group]}
        if not behind:
            return
        _log().info("dense_changed", groups=sorted(behind))
        given_up = [held for held in self.held if held.copy.group in behind and not held.live]
        self.held = [held for held in self.held if held not in given_up]
        self.copies.retire(self._conn, [(h.copy.group, h.copy.generation) for h in given_up])
        self._begin(sorted(behind))

    def look_round(self) -> None:
        """Look at some rankings that nobody writes to; fill anew what lost something."""
        for copy, damaged in self._patrol.visit([held.copy for held in self.held if held.live]):
            left_out = self.parking.left_out(copy.generation)
            new = [ranking for ranking in damaged if int(ranking) not in left_out]
            if new or not damaged:
                held = next(h for h in self.held if h.copy.generation == copy.generation)
                self.refill(held, new)

    def suspect(self, held: Held, script: str) -> None:
        """A script failed: let what it is called for next with this copy be tried in pieces."""
        self._suspects.add((held.copy.generation, script))
        self.unread.add(held.copy.group)

    def abandon(self, broken: Sequence[Held]) -> None:
        """Give up copies that nothing can be applied to; new ones are begun."""
        if not broken:
            return
        _log().error("copies_broken", groups=[held.copy.group for held in broken])
        self.copies.hide([held.copy.group for held in broken if held.live])
        self.held = [held for held in self.held if held not in broken]
        self.copies.retire(self._conn, [(h.copy.group, h.copy.generation) for h in broken])
        self.unread |= {held.copy.group for held in broken}

    def sound(self, held: Held, parts: Sequence[Part], stamp: Stamp) -> list[Part] | None:
        """What of a batch can be applied to a copy; the rest is parked. None: nothing just now."""
        pending = held.pending

        def call(tried: Sequence[Part]) -> ScriptCall:
            nonlocal pending
            keys = self.copies.group(held.copy.group)
            made = probe_call(held, keys, tried, stamp, pending=pending, publish=self._publish)
            pending = probed(stamp)
            return made

        sound = self._sound(held, parts, "apply", call)
        held.pending = pending
        return sound

    def _sound(
        self,
        held: Held,
        parts: Sequence[Part],
        script: str,
        call: Callable[[Sequence[Part]], ScriptCall],
    ) -> list[Part] | None:
        copy = held.copy
        left_out = self.parking.left_out(copy.generation)
        sent = [part for part in parts if part.ranking not in left_out]
        wrong = [refused for part in sent if (refused := misread(part)) is not None]
        # The source says so: it would say the same to a new copy.
        if wrong and not self._park(held, wrong, at_once=False):
            return None
        if (copy.generation, script) in self._suspects:
            kept = _without(sent, wrong)
            sifted = sift(self._link, call, kept, rows_max=self._rows_max)
            if sifted.moved:
                self.unread.add(copy.group)
                return None
            self._suspects.discard((copy.generation, script))
            if sifted.broken:
                self.abandon([held])
                return None
            if sifted.refused and not self._park(held, sifted.refused, at_once=held.live):
                return None
            wrong += sifted.refused
            if sifted.refused and held.live:
                self.retry([copy.group])
        return _without(sent, wrong)

    def _park(self, held: Held, refused: Sequence[Refused], *, at_once: bool) -> bool:
        if self.parking.park(held.copy, refused, at_once=at_once):
            return True
        self.abandon([held])
        return False

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
        self._begin(sorted(pruned_groups - {held.copy.group for held in self.held}))

    def fill(self) -> list[Part]:
        """Bring one chunk of its scan into each copy that is being filled; return the rows."""
        warming = [
            held
            for held in self.held
            if held.copy.scan != "done" and held.copy.group not in self.unread
        ]
        if not warming:
            return []
        read = [(held, *scan_chunk(self._conn, held.copy, self._rows_max)) for held in warming]
        tick = self._tick()  # after the chunks were read: it covers every row in them
        crashpoint("chunk_covered")
        chunks = [
            (held, parts, sound, position)
            for held, parts, position in read
            if (sound := self._sound(held, parts, "fill", self._fill_probe(held, tick))) is not None
        ]
        replies, _ = self._link.calls(
            [
                fill_call(held, self.copies.group(held.copy.group), sound, position, tick)
                for held, _, sound, position in chunks
            ]
        )
        crashpoint("chunk_applied")
        filled: list[Part] = []
        for (held, parts, _, position), reply in zip(chunks, replies, strict=True):
            if isinstance(reply, ResponseError):
                if not is_poison(reply):
                    raise ProjectionUnavailable(f"fill: {reply}") from reply
                self.suspect(held, "fill")
                continue
            if reply[0] != FillReply.APPLIED:
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
            if position == "done":
                crashpoint("scan_done")
        return filled

    def _fill_probe(self, held: Held, tick: Tick) -> Callable[[Sequence[Part]], ScriptCall]:
        keys = self.copies.group(held.copy.group)
        return lambda tried: fill_call(held, keys, tried, held.copy.scan, tick)

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
        self.parking.show(held.copy for held in warm if held.live)


def _without(parts: Sequence[Part], refused: Sequence[Refused]) -> list[Part]:
    rankings = {each.ranking for each in refused}
    return [part for part in parts if part.ranking not in rankings]


def _named_source(text: str) -> tuple[str, int]:
    cluster, _, timeline = text.partition(":")
    return cluster, int(timeline) if timeline.isdecimal() else 0


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
