"""The copies of a group in Redis: which exists, which is live, and how far each is.

A generation is one complete copy. Redis decides which is live; PostgreSQL lists them.
"""

from dataclasses import dataclass
from uuid import uuid4

from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Connection, Tick
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link
from truerank.projection.scripts import SwitchReply
from truerank.steps import ScriptCall

_FIELDS = ("epoch", "cursor", "pending", "snapshot", "scan", "high", "covered")


def cursor_text(tick: Tick, reached: str) -> str:
    """The cursor after a batch: the tick, its nonce, and where the batch was cut."""
    return f"{tick.id}:{tick.nonce}:{Snapshot.parse(reached).xmax}"


def named_tick(text: str) -> tuple[int, str]:
    """Id and nonce of the tick that a cursor, a pending batch or `covered` names."""
    tick, nonce, *_ = text.split(":")
    return int(tick), nonce


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What the meta of one generation says."""

    group: int
    generation: str
    epoch: str
    cursor: str
    pending: str
    snapshot: str
    scan: str
    high: str
    covered: str

    @property
    def warm(self) -> bool:
        """Whether everything that existed when the scan ended is in, and the log since then."""
        return (
            self.scan == "done"
            and self.pending == ""
            and Snapshot.parse(self.snapshot).contains(Snapshot.parse(self.high))
        )


class Copies:
    """The generations of all groups under one prefix."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = prefix

    def group(self, group: int) -> GroupKeys:
        """The keys of one group."""
        return GroupKeys(self._prefix, group)

    def keys(self, group: int, generation: str) -> GenerationKeys:
        """The keys of one generation."""
        return self.group(group).generation(generation)

    def live(self, group: int) -> Copy | None:
        """The copy that readers read, or None where there is none or its meta is damaged."""
        generation = self._link.command("GET", self.group(group).pointer)
        return self.read(group, generation.decode()) if generation else None

    def read(self, group: int, generation: str) -> Copy | None:
        """The meta of one generation, or None where it is missing or damaged."""
        values = self._link.command("HMGET", self.keys(group, generation).meta, *_FIELDS)
        if any(value is None for value in values):
            return None
        texts = dict(zip(_FIELDS, (value.decode() for value in values), strict=True))
        return Copy(group=group, generation=generation, **texts)

    def begin(self, conn: Connection, group: int, epoch: str, tick: Tick) -> Copy:
        """Make an empty generation that starts at `tick`, listed before it exists."""
        generation = uuid4().hex
        conn.execute(
            "SELECT truerank.note_generation(%s, %s::smallint, %s, %s, %s, %s::pg_snapshot)",
            (generation, group, epoch, "warming", tick.id, tick.snapshot),
        )
        meta = {
            "epoch": epoch,
            "cursor": cursor_text(tick, tick.snapshot),
            "pending": "",
            "snapshot": tick.snapshot,
            "tick": str(tick.id),
            "scan": "",
            "high": "",
            "covered": f"{tick.id}:{tick.nonce}",
        }
        self._link.call(
            ScriptCall(
                "begin",
                [self.keys(group, generation).meta],
                [part for pair in meta.items() for part in pair],
            )
        )
        copy = self.read(group, generation)
        assert copy is not None, "the meta was written by the call before"
        return copy

    def switch(self, conn: Connection, new: Copy, live: Copy | None) -> bool:
        """Let readers read `new`, unless either copy has moved since it was read.

        Never to a copy that shows less than the live one. Whatever was live before is retired.
        """
        if not new.warm:
            return False
        if live is not None and live.epoch == new.epoch:
            shown, shows = Snapshot.parse(live.snapshot), Snapshot.parse(new.snapshot)
            if not shows.contains(shown):
                return False
        pointed = self._link.command("GET", self.group(new.group).pointer)
        before = pointed.decode() if pointed else ""
        reply, _ = self._link.call(
            ScriptCall(
                "switch",
                [
                    self.group(new.group).pointer,
                    self.keys(new.group, new.generation).meta,
                    self.keys(new.group, live.generation if live else new.generation).meta,
                ],
                [
                    new.epoch,
                    new.generation,
                    new.cursor,
                    before,
                    live.cursor if live else "",
                ],
            )
        )
        if reply != SwitchReply.SWITCHED:
            return False
        conn.execute("SELECT truerank.note_switch(%s, %s::smallint)", (new.generation, new.group))
        if before:
            self.retire(conn, new.group, before)
        return True

    def hide(self, group: int) -> None:
        """Take the pointer away: nobody is served from this group until the next switch."""
        self._link.command("DEL", self.group(group).pointer)

    def listed(self, conn: Connection, group: int) -> list[str]:
        """The generations of a group that a worker was filling, by PostgreSQL's list."""
        rows = conn.execute("SELECT truerank.warming_generations(%s::smallint)", (group,))
        return [generation.hex for (generation,) in rows.fetchall()]

    def retire(self, conn: Connection, group: int, generation: str) -> None:
        """Remove a copy that nobody reads: its meta first, then its rankings one by one."""
        keys = self.keys(group, generation)
        rankings = self._link.command("HKEYS", keys.counts)
        self._link.command("UNLINK", keys.meta)
        for ranking in rankings:
            self._link.command("UNLINK", keys.places(int(ranking)), keys.shown(int(ranking)))
        self._link.command("UNLINK", keys.counts)
        conn.execute("SELECT truerank.drop_generation(%s)", (generation,))
