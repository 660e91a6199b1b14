"""Force what the source says into a live copy: the calls of the scripts that repair.

They bypass the fence of versions, and never the comparison with what was read: a copy that has
moved on, or an entry that has changed, is left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from truerank.outbox import ticks
from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copy
from truerank.projection.scripts import RepairReply
from truerank.repair.findings import Ranking
from truerank.repair.judging import Entry, Standing
from truerank.repair.looking import Candidate, Looker, raised
from truerank.steps import ScriptCall

_RECOUNTED_MAX = 20_000  # entries that are looked at in one call


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """One member: what was read of it, and what the source says."""

    candidate: Candidate
    entry: Entry
    source: Standing | None


class Mender:
    """Calls the scripts that repair.

    Args:
        conn: in autocommit, to the source: ticks are taken on it.
        looker: of the copies.
        publish: the command that gives hints.
    """

    def __init__(self, conn: Connection, looker: Looker, *, publish: str = "PUBLISH") -> None:
        self._conn = conn
        self._looker = looker
        self._publish = publish

    def standings(
        self, copy: Copy, ranking: Ranking, mends: Sequence[Mend], *, dense: bool
    ) -> list[bool]:
        """Put standings right where nothing has changed since they were read.

        Args:
            copy: as it was when the entries were read.
            ranking: of the standings.
            mends: the standings.
            dense: whether the copy counts the ranking densely.

        Returns:
            For each whether it was mended; all False where the copy has moved on.
        """
        words: list[str | bytes | int] = []
        for mend in mends:
            places = sorted(mend.candidate.places | set(mend.entry.places))
            words += [
                mend.candidate.member,
                _optional(mend.entry.shown),
                _optional(mend.source.shown if mend.source else None),
                len(places),
                *places,
            ]
        reply = self._repair(copy, ranking, [0, *words], dense=dense)
        return _done(reply) or [False] * len(mends)

    def prefixes(self, copy: Copy, ranking: Ranking, prefixes: Sequence[bytes]) -> bool:
        """Bring prefixes of a ranking that is counted densely in line with its places.

        Returns:
            False where the copy has moved on.
        """
        reply = self._repair(copy, ranking, [len(prefixes), *prefixes], dense=True)
        return _done(reply) is not None

    def states(
        self,
        copy: Copy,
        records: Sequence[tuple[bytes, bytes | None, bytes]],
    ) -> list[bool]:
        """Put records of states right: member, the record as it was read, and as it is to be.

        Args:
            copy: as it was when the records were read.
            records: to be written.

        Returns:
            For each whether it was mended.
        """
        words = [
            word
            for member, seen, wanted in records
            for word in (member, _optional(seen), _optional(wanted or None))
        ]
        return _done(self._restate(copy, [0, *words])) or [False] * len(records)

    def sizes(self, copy: Copy) -> bool:
        """Write down how many states and rankings a copy has, all of which were compared.

        Returns:
            False where the copy has moved on.
        """
        return _done(self._restate(copy, [1])) is not None

    def recount(self, copy: Copy, ranking: Ranking, *, dense: bool) -> bool:
        """Write down how large a ranking is, all of whose standings were compared.

        Returns:
            False where it is quarantined or too large: then a new copy is the way.
        """
        keys = self._looker.keys(copy)
        reply = self._call(
            "recount",
            [
                keys.meta,
                keys.counts,
                keys.members,
                *self._ranking_keys(copy, ranking, dense=dense),
            ],
            [
                copy.epoch,
                ranking.id,
                ranking.equal_bytes if dense else 0,
                _RECOUNTED_MAX,
            ],
        )
        return reply == RepairReply.APPLIED

    def quarantine(self, copy: Copy, rankings: Sequence[int]) -> None:
        """Let PostgreSQL answer for rankings until a worker has filled a new copy."""
        keys = self._looker.keys(copy)
        self._call("quarantine", [keys.meta, keys.counts], [copy.epoch, *rankings])

    def _repair(
        self, copy: Copy, ranking: Ranking, words: Sequence[str | bytes | int], *, dense: bool
    ) -> object:
        keys, group = self._looker.keys(copy), self._looker.group(copy.group)
        return self._call(
            "repair",
            [
                group.pointer,
                keys.meta,
                keys.counts,
                keys.members,
                *self._ranking_keys(copy, ranking, dense=dense),
            ],
            [
                copy.epoch,
                copy.generation,
                copy.cursor,
                self._covering_tick(),
                group.hints,
                self._publish,
                ranking.id,
                ranking.board_id,
                ranking.equal_bytes if dense else 0,
                *words,
            ],
        )

    def _restate(self, copy: Copy, words: Sequence[str | bytes | int]) -> object:
        keys = self._looker.keys(copy)
        return self._call(
            "restate",
            [self._looker.group(copy.group).pointer, keys.meta, keys.members, keys.counts],
            [copy.epoch, copy.generation, copy.cursor, self._covering_tick(), *words],
        )

    def _ranking_keys(self, copy: Copy, ranking: Ranking, *, dense: bool) -> list[str]:
        keys = self._looker.keys(copy)
        return [
            keys.places(ranking.id),
            keys.shown(ranking.id),
            *([keys.prefixes(ranking.id)] if dense and ranking.equal_bytes else []),
        ]

    def _covering_tick(self) -> str:
        # After the source was read: whatever becomes of this database, what is written now can be
        # told from what it never had.
        tick = ticks.tick_now(self._conn)
        return f"{tick.id}:{tick.nonce}"

    def _call(self, script: str, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        ((reply,), _) = self._looker.link.calls([ScriptCall(script, keys, args)])
        return raised(reply)


def _optional(value: bytes | None) -> bytes:
    return b"-" if value is None else b"=" + value


def _done(reply: object) -> list[bool] | None:
    """For each member whether it was mended; None where the copy has moved on."""
    if isinstance(reply, list) and reply[0] == RepairReply.APPLIED:
        return [bool(each) for each in reply[1]]
    return None
