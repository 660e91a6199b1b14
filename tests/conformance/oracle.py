"""A ranking computed the slow way, in plain Python, from what was submitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from truerank.model import Entry, MemberState, Numbering, Order, Page, Place, ScoreEvent, TieBreak


@dataclass(frozen=True)
class Oracle:
    """A board on which every member has one event, given in the order of submission.

    Those who are withheld take no place; their events aren't among these.
    """

    board: str
    season: str
    order: Order
    decimals: int
    tie_breaks: Sequence[TieBreak]
    events: Sequence[ScoreEvent]
    withheld: Mapping[str, MemberState] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, str, tuple[Decimal, ...]]]:
        """Member, score as text, and what equals share; in order."""
        numbered = [(self._equals(event), i, event) for i, event in enumerate(self.events)]
        numbered.sort(key=lambda row: (row[0], _instant(row[2]), row[1], row[2].member.encode()))
        return [(e.member, f"{self._score(e):f}", equals) for equals, _, e in numbered]

    def entries(self, first: int, limit: int, numbering: Numbering) -> tuple[Entry, ...]:
        rows = self.rows()
        return tuple(
            Entry(rank=self._rank(i, numbering), member=member, score=score)
            for i, (member, score, _) in enumerate(rows)
            if first <= i < first + limit
        )

    def place(self, member: str, numbering: Numbering) -> Place:
        for i, (other, score, _) in enumerate(self.rows()):
            if other == member:
                return Place(member=member, rank=self._rank(i, numbering), score=score)
        state = self.withheld.get(member, MemberState.ACTIVE)
        return Place(member=member, rank=None, score=None, state=state)

    def around(self, member: str, limit: int, numbering: Numbering) -> tuple[Entry, ...]:
        members = [other for other, _, _ in self.rows()]
        if member not in members:
            return ()
        first = members.index(member) - (limit - 1) // 2
        first = max(0, min(first, len(members) - limit))
        return self.entries(first, limit, numbering)

    def beside(self, member: str) -> tuple[float, int, int]:
        """Percentile, and how many are better and how many share the score and tie-breaks."""
        rows = self.rows()
        (mine,) = (equals for other, _, equals in rows if other == member)
        below = sum(equals > mine for _, _, equals in rows)
        percentile = 100.0 if len(rows) == 1 else 100 * below / (len(rows) - 1)
        return percentile, *self.counts(mine)

    def counts(self, mine: tuple[Decimal, ...]) -> tuple[int, int]:
        """How many rows are better than these values, and how many begin with them."""
        rows = [equals[: len(mine)] for _, _, equals in self.rows()]
        return sum(equals < mine for equals in rows), sum(equals == mine for equals in rows)

    def reached(self, mine: tuple[Decimal, ...], numbering: Numbering) -> int:
        """The rank of one who reached these values after all others."""
        better, equal = self.counts(mine)
        if numbering is Numbering.DENSE:
            return 1 + len({row for _, _, row in self.rows() if row[: len(mine)] < mine})
        return 1 + better + (equal if numbering is Numbering.ORDINAL else 0)

    def between(self, low: Decimal | None, high: Decimal | None) -> list[str]:
        """The members with scores between two, in order."""
        return [
            member
            for member, score, _ in self.rows()
            if (low is None or Decimal(score) >= low) and (high is None or Decimal(score) <= high)
        ]

    def check(self, page: Page, **expected: object) -> None:
        """Compare everything but the freshness."""
        assert (page.board, page.season, page.total) == (self.board, self.season, len(self.events))
        for name in ("entries", "places", "around"):
            assert getattr(page, name) == expected.get(name, ()), name

    def _rank(self, index: int, numbering: Numbering) -> int:
        if numbering is Numbering.ORDINAL:
            return index + 1
        rows = self.rows()
        if numbering is Numbering.DENSE:
            return len({equals for _, _, equals in rows[: index + 1]})
        return next(i for i, row in enumerate(rows) if row[2] == rows[index][2]) + 1

    def _score(self, event: ScoreEvent) -> Decimal:
        return Decimal(event.value).quantize(Decimal(1).scaleb(-self.decimals))

    def _equals(self, event: ScoreEvent) -> tuple[Decimal, ...]:
        score = self._score(event)
        return (
            -score if self.order is Order.DESC else score,
            *(
                Decimal(-value if tie.order is Order.DESC else value)
                for tie, value in zip(self.tie_breaks, event.ties, strict=True)
            ),
        )


def _instant(event: ScoreEvent) -> datetime:
    assert event.occurred_at is not None
    return event.occurred_at
