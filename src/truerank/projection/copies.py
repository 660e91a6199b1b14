"""The copies of a group in Redis: which exists, which is live, and how far each is.

A generation is one complete copy. Redis decides which is live; PostgreSQL lists them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from truerank.errors import ProjectionUnavailable
from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Connection, Tick
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link
from truerank.projection.scripts import SwitchReply
from truerank.steps import ScriptCall

_FIELDS = ("epoch", "cursor", "base", "pending", "snapshot", "scan", "high", "covered")


def cursor_text(tick: Tick, reached: str) -> str:
    """The cursor after a batch: the tick, its nonce, and where the batch was cut."""
    return f"{tick.id}:{tick.nonce}:{Snapshot.parse(reached).xmax}"


def named_tick(text: str) -> tuple[int, str]:
    """Id and nonce of the tick that a cursor, a pending batch or `covered` names."""
    tick, nonce, *_ = text.split(":")
    return int(tick), nonce


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What the meta of one generation says.

    `base` is the last tick that is shown whole: where a batch was cut, the cursor names a newer
    one, but rows from the base on are still needed.
    """

    group: int
    generation: str
    epoch: str
    cursor: str
    base: str
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
    """The generations of all groups under one prefix; every method serves many at once."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = prefix

    def group(self, group: int) -> GroupKeys:
        """The keys of one group."""
        return GroupKeys(self._prefix, group)

    def keys(self, group: int, generation: str) -> GenerationKeys:
        """The keys of one generation."""
        return self.group(group).generation(generation)

    def pointed(self, groups: Sequence[int]) -> dict[int, str]:
        """The generation that each group's pointer names; groups without one are absent.

        A pointer that names nothing is taken away: a switch could never agree with it.
        """
        replies = self._link.commands([("GET", self.group(group).pointer) for group in groups])
        named = {g: reply for g, reply in zip(groups, replies, strict=True) if reply}
        self.hide([group for group, reply in named.items() if not reply.isalnum()])
        return {group: reply.decode() for group, reply in named.items() if reply.isalnum()}

    def read(self, generations: Sequence[tuple[int, str]]) -> list[Copy]:
        """The metas of these (group, generation); missing or damaged ones are left out."""
        replies = self._link.commands(
            [("HMGET", self.keys(group, name).meta, *_FIELDS) for group, name in generations]
        )
        copies = [
            _parsed(group, name, values)
            for (group, name), values in zip(generations, replies, strict=True)
        ]
        return [copy for copy in copies if copy is not None]

    def begin(self, conn: Connection, groups: Sequence[int], epoch: str, tick: Tick) -> list[Copy]:
        """Make an empty generation of each group, starting at `tick`; listed before it exists."""
        meta = {
            "epoch": epoch,
            "cursor": cursor_text(tick, tick.snapshot),
            "base": str(tick.id),
            "pending": "",
            "snapshot": tick.snapshot,
            "scan": "",
            "high": "",
            "covered": f"{tick.id}:{tick.nonce}",
        }
        copies = [Copy(group=group, generation=uuid4().hex, **meta) for group in groups]
        conn.execute(
            "SELECT truerank.note_generations(%s::uuid[], %s::smallint[], %s, %s, %s::pg_snapshot)",
            ([copy.generation for copy in copies], list(groups), epoch, tick.id, tick.snapshot),
        )
        fields = [word for pair in meta.items() for word in pair]
        replies, _ = self._link.calls(
            [
                ScriptCall(
                    "begin",
                    [self.keys(copy.group, copy.generation).meta],
                    [*fields, "tick", str(tick.id)],
                )
                for copy in copies
            ]
        )
        if any(reply != 1 for reply in replies):
            # Out of memory, say. What was listed is cleaned up when the groups are next read.
            raise ProjectionUnavailable(f"a copy could not be begun: {replies}")
        return copies

    def switch(self, conn: Connection, pairs: Sequence[tuple[Copy, Copy | None]]) -> set[int]:
        """Let readers read the first of each pair instead of the second.

        Not where either copy has moved since it was read, and never to a copy that shows less
        than the live one. Whatever was live before is retired.

        Returns:
            The groups that switched.
        """
        before = self.pointed([new.group for new, _ in pairs])
        allowed = [(new, live) for new, live in pairs if _may_follow(new, live)]
        replies, _ = self._link.calls(
            [
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
                        before.get(new.group, ""),
                        live.cursor if live else "",
                    ],
                )
                for new, live in allowed
            ]
        )
        switched = [
            new
            for (new, _), reply in zip(allowed, replies, strict=True)
            if reply == SwitchReply.SWITCHED
        ]
        self.note_live(conn, switched)
        # Another worker may have switched to the same copy meanwhile.
        old = [(new.group, before.get(new.group, new.generation)) for new in switched]
        names = {new.generation for new in switched}
        self.retire(conn, [(group, name) for group, name in old if name not in names])
        return {new.group for new in switched}

    def note_live(self, conn: Connection, copies: Sequence[Copy]) -> None:
        """Note in PostgreSQL which copies Redis says are live."""
        conn.execute(
            "SELECT truerank.note_switches(%s::uuid[], %s::smallint[])",
            ([copy.generation for copy in copies], [copy.group for copy in copies]),
        )

    def hide(self, groups: Sequence[int]) -> None:
        """Take pointers away: nobody is served from these groups until the next switch."""
        self._link.commands([("DEL", self.group(group).pointer) for group in groups])

    def listed(self, conn: Connection, groups: Sequence[int]) -> list[tuple[int, str, str]]:
        """Group, name and state of the generations in PostgreSQL's list."""
        rows = conn.execute(
            "SELECT grp, id, state FROM truerank.generations(%s::smallint[])", (list(groups),)
        )
        return [(group, generation.hex, state) for group, generation, state in rows.fetchall()]

    def retire(self, conn: Connection, generations: Sequence[tuple[int, str]]) -> None:
        """Remove copies that nobody reads: the meta first, then one ranking at a time."""
        for group, generation in generations:
            keys = self.keys(group, generation)
            rankings, _ = self._link.commands([("HKEYS", keys.counts), ("UNLINK", keys.meta)])
            for ranking in rankings:
                self._link.command("UNLINK", keys.places(int(ranking)), keys.shown(int(ranking)))
            self._link.command("UNLINK", keys.counts)
        if generations:
            conn.execute(
                "SELECT truerank.drop_generations(%s::uuid[])", ([name for _, name in generations],)
            )


def _parsed(group: int, generation: str, values: Sequence[bytes | None]) -> Copy | None:
    """The copy that a meta describes, or None where a field is missing or makes no sense."""
    try:
        texts = [value.decode() for value in values if value is not None]
        copy = Copy(group=group, generation=generation, **dict(zip(_FIELDS, texts, strict=True)))
        int(copy.base)
        for named in filter(None, (copy.cursor, copy.covered, copy.pending)):
            named_tick(named)
        for snapshot in filter(None, (copy.snapshot, copy.high)):
            Snapshot.parse(snapshot)
        if copy.scan not in {"", "done"}:
            ranking, member = json.loads(copy.scan)
            int(ranking), str(member)
        sound = bool(copy.epoch and copy.cursor and copy.snapshot and copy.covered)
    except (ValueError, TypeError):
        return None
    return copy if sound and (copy.scan != "done" or copy.high) else None


def _may_follow(new: Copy, live: Copy | None) -> bool:
    if not new.warm:
        return False
    if live is None or live.epoch != new.epoch:
        return True
    return Snapshot.parse(new.snapshot).contains(Snapshot.parse(live.snapshot))
