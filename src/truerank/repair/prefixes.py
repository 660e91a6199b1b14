"""Compare what a copy keeps of a ranking for dense numbering with the ranking itself.

Each score with its tie-breaks is kept once, as the first bytes of the places that have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from truerank.projection.copies import Copy
from truerank.repair.findings import Finding, Ranking, Report
from truerank.repair.judging import Kind
from truerank.repair.looking import Looker, raised
from truerank.repair.points import Points, Rules

_AT_ONCE_MAX = 1000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Prefixes that the source's places begin with, in order, after one of them (None: all).

    `last`: nothing comes after them.
    """

    used: Sequence[bytes]
    after: bytes | None
    last: bool = False


class Prefixes:
    """Compares and mends prefixes.

    Args:
        looker: of the copies.
        points: with what mends.
        rules: what to do with what is found.
        report: counts what is found.
    """

    def __init__(self, looker: Looker, points: Points, rules: Rules, report: Report) -> None:
        self._looker = looker
        self._points = points
        self._rules = rules
        self._report = report

    def compare(self, copy: Copy, ranking: Ranking, stretch: Stretch) -> bool:
        """Compare what is kept in a stretch; whether something was wrong.

        Raises:
            CopyMoved, KeyDamaged: see `Looker.look`.
        """
        low = b"-" if stretch.after is None else b"(" + stretch.after
        high = b"+" if stretch.last else b"[" + stretch.used[-1]
        key = self._looker.keys(copy).prefixes(ranking.id)
        (reply,) = self._looker.link.try_commands([("ZRANGE", key, low, high, "BYLEX")])
        kept = raised(reply)
        if kept == stretch.used:
            return False
        doubtful = sorted(set(kept) ^ set(stretch.used))
        pieces = range(0, len(doubtful), _AT_ONCE_MAX)
        judged = [self._judge(copy, ranking, doubtful[at : at + _AT_ONCE_MAX]) for at in pieces]
        return any(judged)

    def _judge(self, copy: Copy, ranking: Ranking, doubtful: Sequence[bytes]) -> bool:
        # Both are of one copy and change together, so one look at both tells.
        look = self._looker.look(copy, ranking, prefixes=doubtful)
        if not look.prefixes_kept:
            return False  # the copy was begun before the board asked for it: another is on its way
        wrong = [
            (prefix, stored)
            for prefix, (stored, used) in zip(doubtful, look.prefixes, strict=True)
            # One of another length is of no use, whatever begins with it.
            if stored != (used and len(prefix) == ranking.equal_bytes)
        ]
        repaired = bool(wrong) and self._rules.repair and self._mend(copy, ranking, wrong)
        self._report.take_other(
            [
                Finding(
                    kind=Kind.GHOST if stored else Kind.MISSING,
                    detail="dense prefixes",
                    group=ranking.group,
                    ranking=ranking,
                    repaired=repaired,
                )
                for _, stored in wrong
            ]
        )
        return bool(wrong)

    def _mend(self, copy: Copy, ranking: Ranking, wrong: Sequence[tuple[bytes, bool]]) -> bool:
        rested = self._points.rested(copy, ranking)
        names = [prefix for prefix, _ in wrong]
        return self._points.mender.prefixes(rested.copy, ranking, names)
