"""Remove from Redis what still names somebody who is erased: tombstones and states.

They keep out what may still arrive, so they go last: when no row of the outbox names the person any
more, and only from copies that have seen every such row.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from redis.exceptions import ResponseError

from truerank.crashpoints import crashpoint
from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copies, Copy
from truerank.projection.link import Link
from truerank.projection.scripts import PurgeReply
from truerank.steps import ScriptCall

_OPEN = "SELECT truerank.erasures_open()"
_SWEEP = "SELECT truerank.sweep_erasures(%s)"
_TURN = "SELECT truerank.turn_for_erasures(%s)"
_DUE = "SELECT * FROM truerank.erasures_to_purge(%s::smallint[])"
_NOTE = "SELECT truerank.note_purged(%s::uuid[], %s::smallint[])"
_SWEPT_MAX = 20
_RANKINGS_PER_CALL_MAX = 200
_SCAN = 1000


@dataclass(frozen=True, slots=True)
class _Erasure:
    id: UUID
    names: list[str]
    groups: list[int]
    floor_tick: int


class Erasing:
    """What one worker does about erasures, in the groups that it leases.

    Args:
        conn: in autocommit.
        link: to the server that holds the copies.
        copies: the generations of all groups.
        dead_s: see `turn_ring`.
    """

    def __init__(self, conn: Connection, link: Link, copies: Copies, *, dead_s: int) -> None:
        self._conn = conn
        self._link = link
        self._copies = copies
        self._dead_s = dead_s

    def keep(self, held: Sequence[Copy], groups: Collection[int]) -> None:
        """Take out what came late, let the outbox forget who is erased, then these groups' copies.

        Args:
            held: all copies of the groups that are projected to.
            groups: those of them that were read from Redis.

        Raises:
            ProjectionUnavailable: Redis did not answer.

        Source: `schema/functions/sweep_erasures.sql`, `erasures_to_purge.sql`,
        `projection/lua/purge.lua`.
        """
        if self._conn.execute(_OPEN).fetchone() != (True,):
            return
        self._conn.execute(_SWEEP, (_SWEPT_MAX,))
        crashpoint("erasures_swept")
        self._conn.execute(_TURN, (self._dead_s,))
        due = [_Erasure(*row) for row in self._conn.execute(_DUE, (sorted(groups),)).fetchall()]
        for group in sorted({group for erasure in due for group in erasure.groups}):
            asked = [erasure for erasure in due if group in erasure.groups]
            copies = [copy for copy in held if copy.group == group]
            if self._purge(group, copies, asked):
                crashpoint("group_purged")
                self._conn.execute(_NOTE, ([each.id for each in asked], [group] * len(asked)))

    def _purge(self, group: int, copies: Sequence[Copy], asked: Sequence[_Erasure]) -> bool:
        """Whether nothing that the group has in Redis names them any more."""
        names = [name for erasure in asked for name in erasure.names]
        floor_tick = max(erasure.floor_tick for erasure in asked)
        return (
            bool(copies)
            and self._others_are_gone(group, {copy.generation for copy in copies})
            and all(
                reply == PurgeReply.PURGED
                for copy in copies
                for reply in self._purged(copy, names, floor_tick)
            )
        )

    def _others_are_gone(self, group: int, kept: Collection[str]) -> bool:
        keys = [
            self._copies.keys(group, name)
            for _, name, _ in self._copies.listed(self._conn, [group])
            if name not in kept
        ]
        left = self._link.commands([("EXISTS", k.meta, k.counts, k.members) for k in keys])
        return not any(left)

    def _purged(self, copy: Copy, names: Sequence[str], floor_tick: int) -> Iterable[Any]:
        keys = self._copies.keys(copy.group, copy.generation)
        for rankings in self._rankings(keys.counts):
            replies, _ = self._link.calls(
                [
                    ScriptCall(
                        "purge",
                        [keys.meta, keys.counts, keys.members, *map(keys.shown, rankings)],
                        [copy.epoch, floor_tick, len(names), *names, *rankings],
                    )
                ]
            )
            yield from replies

    def _rankings(self, counts: str) -> Iterable[Sequence[int]]:
        """The rankings of a copy, in pieces; at least one piece, for the members' states."""
        scan = b"0"
        while True:
            reply = self._link.try_commands([("HSCAN", counts, scan, "COUNT", _SCAN)])[0]
            if isinstance(reply, ResponseError):
                yield []  # of the wrong type: the script fails as well
                return
            scan, fields = reply
            found = [int(ranking) for ranking in fields[::2] if ranking.isdigit()]
            for first in range(0, max(1, len(found)), _RANKINGS_PER_CALL_MAX):
                yield found[first : first + _RANKINGS_PER_CALL_MAX]
            if scan in {0, b"0"}:
                return
