"""The Lua scripts, called as the worker and the readers call them, on one group of keys."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from truerank.outbox.ticks import Part
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link
from truerank.projection.scripts import PageReply
from truerank.steps import ScriptCall

EPOCH = "e1"
COPY = "g1"
BOARD, OTHER_BOARD = 5, 6
RANKING = BOARD << 36 | 1
SIBLING = BOARD << 36 | 2
OTHER = OTHER_BOARD << 36 | 1
START = "1:n1:10"  # the cursor of a copy that has just begun
END = "2:n2:20"  # the cursor after its first batch
KEY_BYTES = 8


def key(number: int) -> bytes:
    """A sort key; low numbers come first."""
    return struct.pack(">Q", number)


def put(member: str, version: int, at: int) -> bytes:
    """The row that gives a member a place."""
    return b"p" + struct.pack(">Q", version) + key(at) + member.encode()


def drop(member: str, version: int) -> bytes:
    """The row that takes its place away."""
    return b"d" + struct.pack(">Q", version) + member.encode()


def part(*rows: bytes, ranking: int = RANKING, equal_bytes: int = 0) -> Part:
    """Rows of one ranking."""
    return Part(ranking, KEY_BYTES, list(rows), equal_bytes)


@dataclass(frozen=True)
class Scripts:
    """One group in one Redis."""

    link: Link
    group: GroupKeys = field(default_factory=lambda: GroupKeys("lua", 3))

    def copy(self, generation: str = COPY) -> GenerationKeys:
        return self.group.generation(generation)

    def begin(self, generation: str = COPY, **fields: str) -> Any:
        meta = {"epoch": EPOCH, "cursor": START, "pending": "", "snapshot": "10:10:"}
        meta |= {"tick": "1", "scan": "", "high": "", "covered": "1:n1", **fields}
        return self._call("begin", [self.copy(generation).meta], _words(meta))

    def go_live(self, generation: str = COPY) -> None:
        self.link.command("SET", self.group.pointer, generation)

    def apply(
        self,
        *parts: Part,
        generation: str = COPY,
        epoch: str = EPOCH,
        cursor: str = START,
        pending: str = "",
        then: str = "",
    ) -> Any:
        """Call apply: `then` is the pending to write; without it the batch ends at `END`."""
        meta = {} if then else {"cursor": END, "snapshot": "20:20:", "tick": "2", "time": "7"}
        copy = self.copy(generation)
        return self._call(
            "apply",
            [self.group.pointer, copy.meta, copy.counts, copy.members, *_keys(copy, parts)],
            [
                *(epoch, generation, cursor, pending, then, "2:n2"),
                *(self.group.hints, "PUBLISH", len(meta), *_words(meta)),
                *(w for p in parts for w in _packed(p)),
            ],
        )

    def apply_next(self, *parts: Part, generation: str = COPY) -> Any:
        """Call apply with the cursor and pending that are there, so that only rows decide."""
        meta = self.meta(generation)
        return self.apply(
            *parts, generation=generation, cursor=meta["cursor"], pending=meta["pending"]
        )

    def fill(
        self,
        *parts: Part,
        generation: str = COPY,
        epoch: str = EPOCH,
        scan: str = "",
        then: str = "p1",
        high: str = "",
    ) -> Any:
        copy = self.copy(generation)
        return self._call(
            "fill",
            [copy.meta, copy.counts, copy.members, *_keys(copy, parts)],
            [
                *(epoch, scan, then, "3:n3", high),
                *(w for p in parts for w in _packed(p)),
            ],
        )

    def switch(
        self,
        new: str,
        live: str = "",
        *,
        epoch: str = EPOCH,
        cursor: str = START,
        live_cursor: str = "",
    ) -> Any:
        keys = [self.group.pointer, self.copy(new).meta, self.copy(live or new).meta]
        return self._call("switch", keys, [epoch, new, cursor, live, live_cursor])

    def page(
        self,
        *members: str,
        ranking: int = RANKING,
        generation: str = COPY,
        offset: int = 0,
        limit: int = 0,
        around: int = 0,
        row_bytes: int = KEY_BYTES,
        snapshot: int = 0,
        start: str = "at",
        beside: bytes = b"",
        low: bytes = b"",
        high: bytes = b"",
        middle: int | None = None,
        up_to: int = 0,
        marks: Sequence[bytes] = (),
        dense: bool = False,
    ) -> list[Any]:
        """What page.lua answers; where that is an answer, in parts.

        Returns:
            `[code]`, `[MOVED, generation]`, or `[OK, meta, TIME, total, [first, rows, better, low,
            high], members, around, counts]`: of a member `[place, better, sort key, up to]`, or
            `[state]`, or `[]`; of the neighbourhood `[first, rows, better]`, or `[]`.
        """
        copy = self.copy(generation)
        reply: list[Any] = self._call(
            "page",
            [
                *(self.group.pointer, copy.meta, copy.counts),
                *(copy.places(ranking), copy.shown(ranking), copy.members),
                *([copy.prefixes(ranking)] if dense else []),
            ],
            [
                generation,
                ranking,
                row_bytes,
                snapshot,
                start,
                offset if start == "at" else beside,
                low,
                high,
                limit,
                around,
                "" if middle is None else middle,
                up_to,
                BOARD,
                len(members),
                *members,
                *marks,
            ],
        )
        return reply if reply[0] != PageReply.OK else _in_parts(reply)

    def meta(self, generation: str = COPY) -> dict[str, str]:
        flat = self.link.command("HGETALL", self.copy(generation).meta)
        return {
            name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)
        }

    def order(self, ranking: int = RANKING, generation: str = COPY) -> list[str]:
        """The members in the order of their places."""
        rows = self.link.command("ZRANGE", self.copy(generation).places(ranking), 0, -1)
        return [row[KEY_BYTES:].decode() for row in rows]

    def version(self, member: str, ranking: int = RANKING, generation: str = COPY) -> int | None:
        shown = self.link.command("HGET", self.copy(generation).shown(ranking), member)
        return None if shown is None else int.from_bytes(shown[:8])

    def counts(self, ranking: int = RANKING, generation: str = COPY) -> str | None:
        """Places, tombstones, withheld, prefixes where it is dense, as the scripts keep them."""
        value = self.link.command("HGET", self.copy(generation).counts, ranking)
        return None if value is None else str(value.decode())

    def structures(self, ranking: int = RANKING, generation: str = COPY) -> tuple[int, int]:
        """How many entries the order and the table of versions really have."""
        copy = self.copy(generation)
        places, shown = self.link.commands(
            [("ZCARD", copy.places(ranking)), ("HLEN", copy.shown(ranking))]
        )
        return places, shown

    def _call(self, script: str, keys: list[str], args: list[Any]) -> Any:
        reply, _ = self.link.call(ScriptCall(script, keys, args))
        return reply


def _in_parts(reply: list[Any]) -> list[Any]:
    code, head, rows, members, around, counts = reply
    numbers = struct.Struct(">7q")
    total, first, better, low, high, around_first, around_better = numbers.unpack_from(head)
    *meta, seconds, micros, snapshot, lives = head[numbers.size :].split(b"\n")
    return [
        code,
        [*meta, snapshot, lives],
        [seconds, micros],
        total,
        [first, rows, better, low, high],
        [_place(told) for told in members],
        [around_first, around, around_better] if around_first >= 0 else [],
        counts,
    ]


def _place(told: bytes) -> list[Any]:
    if len(told) <= 1:
        return [told] if told else []
    place, better, up_to = struct.unpack(">3I", told[:12])
    return [place, better, told[12:], up_to]


def _packed(one: Part) -> list[int | bytes]:
    return [
        *(one.ranking, one.board, one.key_bytes, one.equal_bytes, len(one.rows)),
        *one.rows,
    ]


def _words(fields: dict[str, str]) -> list[str]:
    return [word for pair in fields.items() for word in pair]


def _keys(copy: GenerationKeys, parts: tuple[Part, ...]) -> list[str]:
    return [
        key
        for part in parts
        for key in (
            copy.places(part.ranking),
            copy.shown(part.ranking),
            *([copy.prefixes(part.ranking)] if part.equal_bytes else []),
        )
    ]
