"""Walk through a ranking in order, in both stores at once, chunk by chunk.

A chunk is a slice of the source and the same stretch of the places in Redis, compared as bytes.
What differs is only a candidate, to be judged at a point. What such a walk can't meet is looked for
afterwards: entries without a place, places out of order, and who moved behind it meanwhile.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copy
from truerank.repair.findings import Finding, Ranking, Report
from truerank.repair.judging import VERSION_BYTES, Kind
from truerank.repair.looking import QUARANTINED, Candidate, Look, Looker, raised
from truerank.repair.points import Points, Rules
from truerank.repair.prefixes import Prefixes, Stretch
from truerank.repair.source import Slice, read_movers, read_slice

Command = Sequence[str | bytes | int]

_TOLD_MAX = 100_000
_MOVERS_MAX = 100_000


@dataclass(slots=True)
class Progress:
    """How far the walk through a ranking has come."""

    after: tuple[bytes, str] = (b"", "")  # the last sort key and member of the source
    place: bytes = b""  # the last place; empty: none yet
    prefix: bytes | None = None  # the last prefix; None: none yet
    told: set[bytes] = field(default_factory=set)  # members with a finding
    amiss: bool = False  # something else was wrong
    in_order: bool = True
    walked: bool = False
    chunks: int = 0
    since: str = ""  # what the copy had reached when the walk began
    look: Look | None = None  # at the sizes, after the walk

    @property
    def wrong(self) -> bool:
        """Whether anything was wrong."""
        return self.amiss or bool(self.told)

    @classmethod
    def resumed(cls, after: tuple[bytes, str], ranking: Ranking) -> "Progress":
        """Go on after a sort key and member at which an earlier walk stopped."""
        key, member = after
        prefix = key[: ranking.equal_bytes] if ranking.equal_bytes else None
        return cls(after=after, place=key + member.encode(), prefix=prefix)


class Walk:
    """The comparison of one ranking with one copy.

    Args:
        conn: in autocommit, to the source.
        looker: of the copies.
        points: judges candidates.
        rules: what to do with what is found.
        report: counts what is found.
    """

    def __init__(
        self, conn: Connection, looker: Looker, points: Points, rules: Rules, report: Report
    ) -> None:
        self._conn = conn
        self._looker = looker
        self._points = points
        self._rules = rules
        self._prefixes = Prefixes(looker, points, rules, report)
        self._rows = rules.rows_max
        # Places read at once: where there are more than the source has, they are left over.
        self._stretch_max = 2 * rules.rows_max
        self._report = report

    def begin(self, copy: Copy, ranking: Ranking, progress: Progress) -> bool:
        """Look for places that are out of order: among them no stretch can be read.

        Returns:
            False where the copy leaves the ranking to PostgreSQL: there is nothing to compare.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        look = self._points.rested(copy, ranking)
        progress.since = look.copy.snapshot
        if look.count == QUARANTINED:
            return False
        if look.sizes.in_order == look.sizes.places:
            return True
        for low, high in (("-inf", "(0"), ("(0", "+inf")):
            places, left = self._strays(copy, ranking, low, high), None
            while places and places != left:
                self._judge(copy, ranking, progress, self._by_place(ranking, places))
                left, places = places, self._strays(copy, ranking, low, high)
        look = self._points.rested(copy, ranking)
        progress.in_order = look.sizes.in_order == look.sizes.places
        return True

    def chunk(self, copy: Copy, ranking: Ranking, progress: Progress) -> int:
        """Compare the next chunk; return how many standings it had.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        rows = (
            read_slice(self._conn, ranking.id, progress.after, self._rows)
            if ranking.board is not None
            else Slice()
        )
        last = len(rows.members) < self._rows
        end = b"+" if last or rows.last is None else rows.last[0] + rows.last[1].encode()
        shown, places = self._read(copy, ranking, progress, rows, end=end)
        if progress.in_order and ranking.equal_bytes:
            self._compare_prefixes(copy, ranking, progress, rows.places, last=last)
        candidates: dict[bytes, Candidate] = {}
        if shown != list(rows.shown) or places != list(rows.places):
            candidates = self._candidates(ranking, rows, shown, places)
        self._judge(copy, ranking, progress, candidates, rows)
        progress.chunks += 1
        if rows.last is not None:
            progress.after = rows.last
        progress.place = end
        progress.walked = last
        return len(rows.members)

    def rest(self, copy: Copy, ranking: Ranking, progress: Progress) -> Iterator[None]:
        """Look for what no stretch has shown; a chunk at a time.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        if progress.chunks > 1:
            movers = read_movers(self._conn, ranking, progress.since, _MOVERS_MAX)
            for at in range(0, len(movers), self._rows):
                found = {m: Candidate(m) for m in movers[at : at + self._rows]}
                self._judge(copy, ranking, progress, found)
                yield
        look = progress.look = self._points.rested(copy, ranking)
        if not progress.in_order:
            for at in range(0, look.sizes.places, self._rows):
                key = self._looker.keys(copy).places(ranking.id)
                (places,) = self._commands(("ZRANGE", key, at, at + self._rows - 1))
                self._judge(copy, ranking, progress, self._by_place(ranking, places))
                yield
        if look.sizes.entries == look.sizes.places and not progress.told:
            return  # each place has its entry, so no entry is without one
        key = self._looker.keys(copy).places(ranking.id)
        for entries in self._looker.fields(self._looker.keys(copy).shown(ranking.id), self._rows):
            named = [(m, s[VERSION_BYTES:] + m) for m, s in entries if len(s) != VERSION_BYTES]
            if named:
                (scores,) = self._commands(("ZMSCORE", key, *(place for _, place in named)))
                unplaced = [m for (m, _), score in zip(named, scores, strict=True) if score is None]
                self._judge(copy, ranking, progress, {m: Candidate(m) for m in unplaced})
            yield

    def finish(self, copy: Copy, ranking: Ranking, progress: Progress) -> bool:
        """Compare what the copy says of the ranking's size with what there is.

        Returns:
            False where it is to be mended, and only a new copy can.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        if progress.look is None or not progress.look.is_whole or progress.wrong:
            progress.look = self._points.rested(copy, ranking)
        if progress.look.is_whole:
            return True
        repaired = False
        if self._rules.repair:
            repaired = self._points.mender.recount(copy, ranking, dense=progress.look.prefixes_kept)
        # Where something in it was wrong, that the count was is no news.
        if not progress.wrong and (repaired or not self._rules.repair):
            finding = Finding(
                kind=Kind.CORRUPT,
                detail="counts",
                group=ranking.group,
                ranking=ranking,
                repaired=repaired,
            )
            self._report.take_other([finding])
        return repaired or not self._rules.repair

    def _read(
        self, copy: Copy, ranking: Ranking, progress: Progress, rows: Slice, *, end: bytes
    ) -> tuple[list[bytes | None], list[bytes]]:
        """What the copy has of the members of a slice, and all places of the same stretch."""
        keys = self._looker.keys(copy)
        read: list[Command] = []
        if rows.members:
            read = [("HMGET", keys.shown(ranking.id), *rows.members)]
        if not progress.in_order:
            wanted = list(rows.places)
            scores: list[Command] = []
            if wanted:
                scores = [("ZMSCORE", keys.places(ranking.id), *wanted)]
            replies = self._commands(*read, *scores)
            found = replies[-1] if scores else []
            there = [place for place, score in zip(wanted, found, strict=True) if score is not None]
            return (replies[0] if read else []), there
        *shown, places = self._commands(*read, self._stretch(copy, ranking, progress.place, end))
        part = places
        while len(part) == self._stretch_max:
            # Far more than the source has: what is left over is judged as it comes.
            (part,) = self._commands(self._stretch(copy, ranking, part[-1], end))
            known = set(rows.places)
            left_over = [place for place in part if place not in known]
            self._judge(copy, ranking, progress, self._by_place(ranking, left_over))
            places += [place for place in part if place in known]
        return (shown[0] if shown else []), places

    def _stretch(self, copy: Copy, ranking: Ranking, after: bytes, end: bytes) -> Command:
        key = self._looker.keys(copy).places(ranking.id)
        low = b"(" + after if after else b"-"
        high = end if end == b"+" else b"[" + end
        return ("ZRANGE", key, low, high, "BYLEX", "LIMIT", 0, self._stretch_max)

    def _candidates(
        self,
        ranking: Ranking,
        rows: Slice,
        shown: Sequence[bytes | None],
        places: Sequence[bytes],
    ) -> dict[bytes, Candidate]:
        """Whom to judge at a point: all for whom the two reads differ."""
        wanted = set(rows.places)
        found = set(places)
        candidates = self._by_place(ranking, found - wanted)
        differing = [
            member
            for member, source, copy in zip(rows.members, rows.shown, shown, strict=True)
            if source != copy
        ]
        for member in [*differing, *(place[ranking.key_bytes :] for place in wanted - found)]:
            candidates.setdefault(member, Candidate(member))
        of_members = rows.wanted()
        for member, candidate in candidates.items():
            if member in of_members:
                candidate.places.add(of_members[member])
        return candidates

    def _by_place(self, ranking: Ranking, places: Iterable[bytes]) -> dict[bytes, Candidate]:
        candidates: dict[bytes, Candidate] = {}
        for place in places:
            member = place[ranking.key_bytes :]
            candidates.setdefault(member, Candidate(member)).places.add(place)
        return candidates

    def _judge(
        self,
        copy: Copy,
        ranking: Ranking,
        progress: Progress,
        candidates: dict[bytes, Candidate],
        rows: Slice | None = None,
    ) -> None:
        """Judge candidates, and count them and the other members of a slice, each once."""
        rows = rows or Slice()
        findings: dict[bytes, Finding] = {}
        if candidates:
            judged = self._points.check(copy, ranking, list(candidates.values()))
            findings = judged.findings
            for member in findings.keys() - set(rows.members) - progress.told:
                source = judged.sources.get(member)
                if findings[member].kind is Kind.LAGGING:
                    continue  # it is counted where its own standing is met
                if source is not None and _was_met(progress, source.sort_key + member):
                    self._report.count_current(-1)  # it was counted before its second place was met
                self._tell(progress, member, findings[member])
        current = 0
        for member in rows.members:
            if member in progress.told:
                continue
            if member in findings:
                self._tell(progress, member, findings[member])
            else:
                current += 1
        self._report.count_current(current)

    def _tell(self, progress: Progress, member: bytes, finding: Finding) -> None:
        self._report.take([finding])
        if len(progress.told) < _TOLD_MAX:
            progress.told.add(member)

    def _compare_prefixes(
        self,
        copy: Copy,
        ranking: Ranking,
        progress: Progress,
        places: Sequence[bytes],
        *,
        last: bool,
    ) -> None:
        before, size = progress.prefix, ranking.equal_bytes
        used = sorted({place[:size] for place in places} - {before or b""})
        if used or last:
            stretch = Stretch(used, before, last=last)
            progress.amiss |= self._prefixes.compare(copy, ranking, stretch)
            progress.prefix = used[-1] if used else before

    def _strays(self, copy: Copy, ranking: Ranking, low: str, high: str) -> list[bytes]:
        """Some of the places whose score is between these."""
        key = self._looker.keys(copy).places(ranking.id)
        limits = (low, high, "BYSCORE", "LIMIT", 0, self._rows)
        places: list[bytes]
        (places,) = self._commands(("ZRANGE", key, *limits))
        return places

    def _commands(self, *commands: Command) -> list[Any]:
        return [raised(reply) for reply in self._looker.link.try_commands(commands)]


def _was_met(progress: Progress, place: bytes) -> bool:
    return progress.walked or place <= progress.place
