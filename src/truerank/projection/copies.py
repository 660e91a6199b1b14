"""The copies of a group in Redis: which exists, which is live, and how far each is.

A generation is one complete copy. Redis decides which is live; PostgreSQL lists them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from redis.exceptions import ResponseError

from truerank.crashpoints import crashpoint
from truerank.errors import ProjectionUnavailable
from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Connection, Tick
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link, is_wrong_type
from truerank.projection.scripts import SwitchReply
from truerank.steps import ScriptCall

_FIELDS = ("epoch", "cursor", "base", "pending", "snapshot", "scan", "high", "covered")
_RETIRED_AT_ONCE_MAX = 8  # copies; more wait for the next slice
_SLICE = 500  # rankings unlinked in one go
_SCANS_MAX = 20  # looks among all keys in one go, each at about as many keys
_NAME = re.compile(rb"[0-9a-f]{32}")  # of a generation


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
    dense_turns: int = 0  # how often dense counting had been turned on or off in the group
    source: str = ""  # cluster and timeline of the WAL it was read from; empty: not yet known

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
        self._retiring: list[tuple[int, str]] = []
        self._uncounted: set[tuple[int, str]] = set()  # of these, those that lost their counts
        self._sought: list[tuple[int, str]] = []  # of these, those looked for among all keys
        self._scan = b"0"  # where that look goes on

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
        replies = self._link.try_commands([("GET", self.group(group).pointer) for group in groups])
        named = {g: _or_raise(r) or b"?" for g, r in zip(groups, replies, strict=True) if r}
        self.hide([group for group, reply in named.items() if not _NAME.fullmatch(reply)])
        return {group: reply.decode() for group, reply in named.items() if _NAME.fullmatch(reply)}

    def read(self, generations: Sequence[tuple[int, str]]) -> list[Copy]:
        """The metas of these (group, generation); missing or damaged ones are left out."""
        replies = self._link.try_commands(
            [
                ("HMGET", self.keys(group, name).meta, *_FIELDS, "source", "dense_turns")
                for group, name in generations
            ]
        )
        copies = [
            _parsed(group, name, values)
            for (group, name), reply in zip(generations, replies, strict=True)
            if (values := _or_raise(reply)) is not None
        ]
        return [copy for copy in copies if copy is not None]

    def begin(
        self,
        conn: Connection,
        groups: Sequence[int],
        epoch: str,
        tick: Tick,
        *,
        cause: str = "lost",
        rows_about: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Copy]:
        """Make an empty generation of each group, starting at `tick`; listed before it exists.

        Args:
            conn: in autocommit.
            groups: without one that is being filled.
            epoch: of the source.
            tick: that was just taken.
            cause: why, as `schema/functions/note_generations.sql` names it.
            rows_about: by group, how many standings it is about to hold.
        """
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
        # Read before any row is: what changes later is noticed by the number of its group.
        turns = self.dense_turns(conn, groups)
        copies = [
            Copy(group=group, generation=uuid4().hex, dense_turns=turns.get(group, 0), **meta)
            for group in groups
        ]
        conn.execute(
            "SELECT truerank.note_generations(%s::uuid[], %s::smallint[], %s, %s, %s::pg_snapshot,"
            " %s, %s::bigint[])",
            (
                [copy.generation for copy in copies],
                list(groups),
                epoch,
                tick.id,
                tick.snapshot,
                cause,
                [rows_about.get(group, 0) for group in groups],
            ),
        )
        crashpoint("generation_listed")
        fields = [word for pair in meta.items() for word in pair]
        replies, _ = self._link.calls(
            [
                ScriptCall(
                    "begin",
                    [self.keys(copy.group, copy.generation).meta],
                    [*fields, "tick", str(tick.id), "dense_turns", str(copy.dense_turns)],
                )
                for copy in copies
            ]
        )
        crashpoint("generation_begun")
        if any(reply != 1 for reply in replies):
            # Out of memory, say. What was listed is cleaned up when the groups are next read.
            raise ProjectionUnavailable(f"a copy could not be begun: {replies}")
        listed = {name for _, name, state in self.listed(conn, groups) if state == "warming"}
        strays = [(c.group, c.generation) for c in copies if c.generation not in listed]
        if strays:
            # Whoever took over while this worker stood still found nothing in Redis to keep, and
            # took them off the list: nobody would ever remove them.
            self.retire(conn, strays)
            raise ProjectionUnavailable(f"{len(strays)} copies were given up by another worker")
        return copies

    def dense_turns(self, conn: Connection, groups: Sequence[int]) -> dict[int, int]:
        """How often dense counting was turned on or off in each group; absent: never.

        Source: `schema/functions/dense_turns.sql`.
        """
        rows = conn.execute("SELECT * FROM truerank.dense_turns(%s::smallint[])", (list(groups),))
        return dict(rows.fetchall())

    def switch(self, conn: Connection, pairs: Sequence[tuple[Copy, Copy | None]]) -> set[int]:
        """Let readers read the first of each pair instead of the second.

        Not where either copy has moved since it was read, and never to a copy that shows less
        than the live one. Whatever was live before is retired, unless the switch was asked for
        with a way back.

        Returns:
            The groups that switched.
        """
        before = self.pointed([new.group for new, _ in pairs])
        allowed = [(new, live) for new, live in pairs if _may_follow(new, live)]
        crashpoint("before_switch")
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
        crashpoint("after_switch")
        former = self.note_live(conn, switched)
        crashpoint("switch_noted")
        # Another worker may have switched to the same copy meanwhile.
        old = [(new.group, before.get(new.group, new.generation)) for new in switched]
        names = {new.generation for new in switched} | former
        self.retire(conn, [(group, name) for group, name in old if name not in names])
        return {new.group for new in switched}

    def note_live(self, conn: Connection, copies: Sequence[Copy]) -> set[str]:
        """Note in PostgreSQL which copies Redis says are live.

        Returns:
            The generations before them that follow along, so that there is a way back.

        Source: `schema/functions/note_switches.sql`.
        """
        rows = conn.execute(
            "SELECT truerank.note_switches(%s::uuid[], %s::smallint[])",
            ([copy.generation for copy in copies], [copy.group for copy in copies]),
        ).fetchall()
        return {generation.hex for (generation,) in rows}

    def formers(self, conn: Connection, groups: Sequence[int]) -> set[str]:
        """The generations of these groups that follow along."""
        return {name for _, name, state in self.listed(conn, groups) if state == "former"}

    def formers_over(self, conn: Connection, groups: Sequence[int]) -> set[str]:
        """The generations of these groups that followed along for as long as they were to.

        Source: `schema/functions/formers_over.sql`.
        """
        rows = conn.execute("SELECT truerank.formers_over(%s::smallint[])", (list(groups),))
        return {generation.hex for (generation,) in rows.fetchall()}

    def fillings(self, conn: Connection, generations: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Of copies that are being filled: why, and how many standings their scan has brought in.

        Source: `schema/functions/fillings.sql`.
        """
        rows = conn.execute(
            "SELECT id, cause, rows FROM truerank.fillings(%s::uuid[])", (list(generations),)
        )
        return {generation.hex: (cause, scanned) for generation, cause, scanned in rows.fetchall()}

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
        """Remove copies that nobody reads: their metas now, what is large a slice at a time.

        They are marked before: a worker that has yet to begin one of them sees that.
        """
        new = [each for each in generations if each not in self._retiring]
        if new:
            conn.execute(
                "SELECT truerank.retire_generations(%s::uuid[])", ([name for _, name in new],)
            )
            self._uncounted |= self._without_counts(new)
        self._link.try_commands([("UNLINK", self.keys(*each).meta) for each in new])
        if new:
            crashpoint("meta_retired")
        self._retiring += new
        if generations:
            self.retire_slice(conn)

    def retire_slice(self, conn: Connection) -> None:
        """Remove some rankings of the copies that are being retired.

        What is left of one when a worker ends, the next one finds in the list in PostgreSQL; it
        stays there for a day, because Redis may wake up as it was before.
        """
        retiring = self._retiring[:_RETIRED_AT_ONCE_MAX]
        if not retiring:
            return
        named = [self.keys(*each) for each in retiring]
        scans = self._link.try_commands(
            [("HSCAN", keys.counts, 0, "COUNT", _SLICE // len(retiring)) for keys in named]
        )
        gone: list[tuple[int, str]] = []
        commands: list[Sequence[str | bytes | int]] = []
        for each, keys, reply in zip(retiring, named, scans, strict=True):
            scan = _or_raise(reply)
            rankings = [] if scan is None else scan[1][::2][:_SLICE]
            whole = scan is None or (scan[0] == b"0" and len(rankings) == len(scan[1]) // 2)
            commands += [
                ("UNLINK", keys.places(ranking), keys.shown(ranking), keys.prefixes(ranking))
                for ranking in map(int, filter(bytes.isdigit, rankings))
            ]
            if rankings:
                commands.append(("HDEL", keys.counts, *rankings))
            if whole:
                commands.append(("UNLINK", keys.counts, keys.members))
                gone.append(each)
        self._link.commands(commands)
        uncounted = [each for each in gone if each in self._uncounted]
        swept = self._sweep_slice(uncounted)
        self._uncounted -= set(swept)
        gone = [each for each in gone if each not in self._uncounted]
        if gone:
            crashpoint("generation_retired")
        if len(gone) < len(retiring):
            crashpoint("between_slices")
        self._retiring = [each for each in self._retiring if each not in gone]
        if gone:
            conn.execute(
                "SELECT truerank.drop_generations(%s::uuid[])", ([name for _, name in gone],)
            )

    def seek_anew(self) -> None:
        """Redis may be another server now, where the place a look has reached means nothing."""
        self._scan = b"0"

    def _without_counts(self, generations: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
        """The copies whose counts don't name each of their rankings, as their metas say."""
        named = [self.keys(*each) for each in generations]
        known = self._link.try_commands([("HGET", keys.meta, "rankings") for keys in named])
        counted = self._link.try_commands([("HLEN", keys.counts) for keys in named])
        return {
            each
            for each, rankings, length in zip(generations, known, counted, strict=True)
            if isinstance(rankings, ResponseError)
            or isinstance(length, ResponseError)
            or rankings not in {None, str(length).encode()}
        }

    def _sweep_slice(self, generations: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """Look for the keys of copies among some of all keys: nothing else names them any more.

        Those that come while a look is under way wait for the next one, for it began without them.

        Returns:
            The copies that were looked for among all keys.
        """
        if self._scan == b"0":
            self._sought = list(generations)
        if not self._sought:
            return []
        stems = tuple(f"{self.keys(*each).stem}:".encode() for each in self._sought)
        for _ in range(_SCANS_MAX):
            scan, names = self._link.command("SCAN", self._scan, "COUNT", _SLICE)
            if left := [name for name in names if name.startswith(stems)]:
                self._link.command("UNLINK", *left)
            self._scan = scan
            if scan == b"0":
                return self._sought
        return []


def _or_raise(reply: Any) -> Any:
    """A reply, or None in place of the error that a key of another type gives.

    Raises:
        ProjectionUnavailable: it is another error.
    """
    if not isinstance(reply, ResponseError):
        return reply
    if not is_wrong_type(reply):
        raise ProjectionUnavailable(f"{reply}") from reply
    return None


def _parsed(group: int, generation: str, found: Sequence[bytes | None]) -> Copy | None:
    """The copy that a meta describes, or None where a field is missing or makes no sense."""
    *values, source, dense_turns = found
    try:
        texts = [value.decode() for value in values if value is not None]
        copy = Copy(
            group=group,
            generation=generation,
            source=(source or b"").decode(errors="replace"),
            dense_turns=int(dense_turns or b"0"),
            **dict(zip(_FIELDS, texts, strict=True)),
        )
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
