"""Compare a copy with the source before readers are let to it: every place, every version.

The source is walked in the order of places, in chunks. Of each chunk the copy's places and versions
must be the same bytes. Under traffic some differ because a change is on its way; they are looked
at one by one until one of both is certain: with the source read before and after, and the copy, at
a tick that shows the first of these, in between, a standing that did not change between the two
must be in the copy as it is. What changes after its chunk was compared comes by the log.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from truerank.errors import ProjectionUnavailable
from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copies
from truerank.projection.held import Held
from truerank.projection.link import Link
from truerank.projection.poison import is_poison
from truerank.projection.proof_states import StateProof
from truerank.steps import ScriptCall

_SLICE = """
    SELECT ranking, equal_bytes, members, shown, withheld
    FROM truerank.proof_slice(%s::smallint, %s, %s, %s, %s)"""
_ROWS = "SELECT shown, withheld, snapshot FROM truerank.proof_rows(%s::bigint[], %s::text[])"
_VERSION = 8  # bytes
_MORE = 64  # places beyond those expected that are read: enough to name some that are too many
_DOUBTS_AT_ONCE_MAX = 500
_DOUBTS_MAX = 20_000  # more are no traffic
_RANKINGS_AT_ONCE_MAX = 500
_STRIKES = 2


@dataclass(frozen=True, slots=True)
class Expected:
    """What the source says of a member: version and sort key, None: nothing; and no place?"""

    shown: bytes | None
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a copy says of a member: its entry, and which of the places asked for it has."""

    shown: bytes | None
    places: frozenset[bytes]


@dataclass(slots=True)
class _Doubt:
    ranking: int
    member: bytes
    places: set[bytes] = field(default_factory=set)  # that were seen and should perhaps not be
    before: Expected | None = None
    snapshot: str = ""
    strikes: int = 0


def judge(member: bytes, before: Expected, found: Found, after: Expected) -> bool | None:
    """Whether a copy's entry is right, given the source before and after it was read.

    Returns:
        True: right. False: wrong. None: the member changes too fast to tell.
    """
    if before == after:
        if after.shown is None:
            shown_right = found.shown is None or len(found.shown) == _VERSION
        else:
            shown_right = found.shown == after.shown
        place = _place(after.shown, member)
        wanted = frozenset() if place is None or after.withheld else frozenset({place})
        return shown_right and found.places == wanted
    if before.shown and found.shown and after.shown:
        between = before.shown[:_VERSION] <= found.shown[:_VERSION] <= after.shown[:_VERSION]
        if between and found.places <= {_place(found.shown, member)}:
            return True
    return None


class Proof:
    """One comparison of one copy, resumed chunk by chunk.

    Args:
        conn: in autocommit.
        link: to the server that holds the copy.
        copies: knows the keys.
        left_out: rankings that the copy doesn't hold.
    """

    def __init__(
        self, conn: Connection, link: Link, copies: Copies, left_out: AbstractSet[int]
    ) -> None:
        self._conn = conn
        self._link = link
        self._copies = copies
        self._left_out = left_out
        self._states = StateProof(conn, link, copies)
        self._after: tuple[int, bytes, str] | None = None  # the last row that was compared
        self._walked = False
        self._counts_scan: int | None = 0
        self._seen: set[int] = set()
        self._doubts: dict[tuple[int, bytes], _Doubt] = {}
        self.rows = 0  # compared so far
        self.wrong: str | None = None  # what is wrong with the copy

    @property
    def done(self) -> bool:
        """Whether all was compared, and nothing is left in doubt."""
        return (
            self._states.done
            and self._walked
            and self._counts_scan is None
            and not self._doubts
            and self.wrong is None
        )

    def look(self, held: Held, rows_max: int) -> int:
        """Go on; the copy must have been brought forward since the last call.

        Args:
            held: the copy, without a batch half done.
            rows_max: standings to compare.

        Returns:
            How many were compared. Afterwards `done` and `wrong` tell.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error that isn't the copy's.
        """
        try:
            return self._look(held, rows_max)
        except ProjectionUnavailable as exc:
            if not is_poison(exc.__cause__):
                raise
            self.wrong = str(exc)  # a key of another type: no new try would mend it
            return 0

    def _look(self, held: Held, rows_max: int) -> int:
        self._settle(held)
        self._states.look(held, rows_max)
        self.wrong = self.wrong or self._states.wrong
        rows = 0
        if self.wrong is None and not self._walked:
            rows = self._walk(held, rows_max)
        if self.wrong is None and self._walked and self._counts_scan is not None:
            self._look_for_more(held)
        if len(self._doubts) > _DOUBTS_MAX:
            self.wrong = f"{len(self._doubts)} standings differ"
        self._ask_source()
        return rows

    def _walk(self, held: Held, rows_max: int) -> int:
        ranking, key, member = self._after or (None, None, None)
        parts = self._conn.execute(
            _SLICE, (held.copy.group, ranking, key, member, rows_max), binary=True
        ).fetchall()
        rows = sum(len(part[2]) for part in parts)
        self._walked = rows < rows_max
        asked = [part for part in parts if part[0] not in self._left_out]
        keys = self._copies.keys(held.copy.group, held.copy.generation)
        bounds: list[tuple[bytes, bytes]] = []
        commands: list[Sequence[str | bytes | int]] = []
        whole: list[int] = []
        for part in asked:
            ranking, _, members, shown, _ = part
            first = b"-"
            if self._after is not None and ranking == self._after[0]:
                first = b"(" + self._after[1] + self._after[2].encode()
            last = b"[" + shown[-1][_VERSION:] + members[-1]
            if part is not parts[-1] or self._walked:
                last = b"+"
                whole.append(ranking)
            bounds.append((first, last))
            commands += [
                ("ZRANGE", keys.places(ranking), first, last, "BYLEX", "LIMIT", 0,
                 len(members) + _MORE),
                ("HMGET", keys.shown(ranking), *members),
            ]  # fmt: skip
        replies = self._link.commands(commands)
        for n, (ranking, _, members, shown, withheld) in enumerate(asked):
            self._compare(ranking, members, shown, withheld or (), replies[2 * n : 2 * n + 2])
        self._compare_prefixes(
            [
                (keys.prefixes(ranking), placed, equal_bytes)
                for (ranking, equal_bytes, *_), placed in zip(asked, replies[::2], strict=True)
                if equal_bytes and placed
            ]
        )
        self._count(held, whole)
        if parts:
            ranking, _, members, shown, _ = parts[-1]
            self._after = (ranking, shown[-1][_VERSION:], members[-1].decode())
        self.rows += rows
        return rows

    def _compare(
        self,
        ranking: int,
        members: Sequence[bytes],
        shown: Sequence[bytes],
        withheld: Iterable[int],
        replies: Sequence[Any],
    ) -> None:
        self._seen.add(ranking)
        placed, entries = replies
        places = [each[_VERSION:] + member for each, member in zip(shown, members, strict=True)]
        hidden = set(withheld)
        if hidden:
            places = [place for n, place in enumerate(places, 1) if n not in hidden]
        if placed == places and entries == shown:
            return
        for member, wanted, entry in zip(members, shown, entries, strict=True):
            if entry != wanted:
                self._doubt(ranking, member)
        key_bytes = len(shown[0]) - _VERSION
        for place in set(placed).symmetric_difference(places):
            self._doubt(ranking, place[key_bytes:], place)

    def _doubt(self, ranking: int, member: bytes, place: bytes | None = None) -> None:
        doubt = self._doubts.setdefault((ranking, member), _Doubt(ranking, member))
        if place is not None:
            doubt.places.add(place)

    def _compare_prefixes(self, dense: Sequence[tuple[str, Sequence[bytes], int]]) -> None:
        """Whether the prefixes of a chunk are those of its places, as the copy itself has them.

        Args:
            dense: per ranking the key of its prefixes, its places, and the bytes of a prefix.
        """
        wanted = [
            (key, list(dict.fromkeys(place[:equal_bytes] for place in placed)))
            for key, placed, equal_bytes in dense
        ]
        kept = self._link.commands(
            [("ZRANGE", key, b"[" + used[0], b"[" + used[-1], "BYLEX") for key, used in wanted]
        )
        for (key, used), found in zip(wanted, kept, strict=True):
            if found != used:
                self.wrong = f"{key}: prefixes are not those of the places"

    def _count(self, held: Held, rankings: Sequence[int]) -> None:
        """Whether rankings hold as much as their counts say."""
        keys = self._copies.keys(held.copy.group, held.copy.generation)
        for at in range(0, len(rankings), _RANKINGS_AT_ONCE_MAX):
            some = rankings[at : at + _RANKINGS_AT_ONCE_MAX]
            named = [key for r in some for key in (keys.places(r), keys.shown(r), keys.prefixes(r))]
            damaged, _ = self._link.call(
                ScriptCall("count", [keys.meta, keys.counts, *named], some)
            )
            if damaged:
                self.wrong = f"ranking {int(damaged[0])} does not hold what its counts say"

    def _look_for_more(self, held: Held) -> None:
        """Put in doubt what a copy has in rankings of which the source said nothing."""
        keys = self._copies.keys(held.copy.group, held.copy.generation)
        scan, fields = self._link.command(
            "HSCAN", keys.counts, self._counts_scan or 0, "COUNT", _RANKINGS_AT_ONCE_MAX
        )
        self._counts_scan = int(scan) or None
        strange = next((name for name in fields[::2] if not name.isdigit()), None)
        if strange is not None:
            self.wrong = f"{keys.counts}: {strange!r} is no ranking"
            return
        more = [
            int(name)
            for name, counts in zip(fields[::2], fields[1::2], strict=True)
            if not counts.startswith(b"0 ")
            and int(name) not in self._seen
            and int(name) not in self._left_out
        ]
        held_there = self._link.commands(
            [("HRANDFIELD", keys.shown(ranking), _MORE, "WITHVALUES") for ranking in more]
        )
        for ranking, members in zip(more, held_there, strict=True):
            for member, shown in zip(members[::2], members[1::2], strict=True):
                place = _place(shown, member)
                if place is not None:
                    self._doubt(ranking, member, place)

    def _settle(self, held: Held) -> None:
        """Judge what was in doubt, where the copy shows what the source was before."""
        since = Snapshot.parse(held.since)
        waiting = [
            doubt
            for doubt in self._doubts.values()
            if doubt.before is not None and since.contains(Snapshot.parse(doubt.snapshot))
        ][:_DOUBTS_AT_ONCE_MAX]
        if not waiting:
            return
        found = self._found(held, waiting)
        before = [doubt.before for doubt in waiting]
        self._read_source(waiting)
        for doubt, first, copied in zip(waiting, before, found, strict=True):
            assert first is not None, "chosen for it"
            assert doubt.before is not None, "it was just read"
            right = judge(doubt.member, first, copied, doubt.before)
            if right:
                del self._doubts[(doubt.ranking, doubt.member)]
            elif right is False:
                doubt.strikes += 1
            if doubt.strikes >= _STRIKES:
                self.wrong = (
                    # Logs and requests for copies keep it: it is to name nobody.
                    f"ranking {doubt.ranking}: of a member the source has {_text(first.shown)},"
                    f" the copy {_text(copied.shown)} at {len(copied.places)} places"
                )

    def _found(self, held: Held, doubts: Sequence[_Doubt]) -> list[Found]:
        keys = self._copies.keys(held.copy.group, held.copy.generation)
        entries = self._link.commands([("HGET", keys.shown(d.ranking), d.member) for d in doubts])
        for doubt, entry in zip(doubts, entries, strict=True):
            doubt.places |= {
                place
                for shown in (entry, doubt.before.shown if doubt.before else None)
                if (place := _place(shown, doubt.member)) is not None
            }
        asked = [(doubt, place) for doubt in doubts for place in sorted(doubt.places)]
        scores = self._link.commands([("ZSCORE", keys.places(d.ranking), p) for d, p in asked])
        there: Mapping[int, set[bytes]] = {id(doubt): set() for doubt in doubts}
        for (doubt, place), score in zip(asked, scores, strict=True):
            if score is not None:
                there[id(doubt)].add(place)
        return [
            Found(entry, frozenset(there[id(doubt)]))
            for doubt, entry in zip(doubts, entries, strict=True)
        ]

    def _ask_source(self) -> None:
        """Read what the source says of new doubts; the copy is looked at when it shows that."""
        new = [doubt for doubt in self._doubts.values() if doubt.before is None]
        if new and self.wrong is None:
            self._read_source(new[:_DOUBTS_AT_ONCE_MAX])

    def _read_source(self, doubts: Sequence[_Doubt]) -> None:
        rows = self._conn.execute(
            _ROWS,
            ([d.ranking for d in doubts], [d.member.decode() for d in doubts]),
            binary=True,
        ).fetchall()
        for doubt, (shown, withheld, snapshot) in zip(doubts, rows, strict=True):
            doubt.before, doubt.snapshot = Expected(shown, withheld=withheld), snapshot


def _place(shown: bytes | None, member: bytes) -> bytes | None:
    if shown is None or len(shown) <= _VERSION:
        return None
    return shown[_VERSION:] + member


def _text(shown: bytes | None) -> str:
    return "nothing" if shown is None else f"version {int.from_bytes(shown[:_VERSION])}"
