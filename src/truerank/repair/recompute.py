"""Compute every standing again from its events, tell where they differ, and mend it where told to.

In bounded slices, each in a statement of its own: an event and what it does to standings commit
together, so that traffic makes no difference. Events that were forgotten count by what was carried
over; seasons that ended before a board's history begins have nothing left to be computed from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from truerank.errors import BoardUnknown
from truerank.steps import Query, Steps

_RANKINGS = "SELECT board, label, ranking, may_change FROM truerank.recount_rankings(%s)"
SLICE = """
    SELECT member, kind, members, stored_score::text, stored_version, counted_score::text
    FROM truerank.recount_slice(%s, %s, %s)"""
_REMAKE = "SELECT truerank.remake_standings(%s, %s::text[])"
MEMBERS_PER_SLICE = 1000
_MEMBERS_PER_REPAIR = 100
_SETTLED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A standing that isn't what its events come to."""

    board: str
    season: str
    member: str
    kind: str  # missing, extra or different
    stored: str | None  # score in the board's unit; None: no standing
    version: int | None
    recomputed: str | None  # None: no event counts
    mended: bool


@dataclass(slots=True)
class Recomputation:
    """What was found."""

    rankings: int = 0
    members: int = 0  # looked at, once per ranking
    differing: list[Differing] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Differences that are still there."""
        return sum(not each.mended for each in self.differing)


def recompute(
    board: str | None = None,
    *,
    repair: bool = False,
    told: Callable[[int, int], object] | None = None,
) -> Steps[Recomputation]:
    """Compare the stored standings with what their events come to.

    Args:
        board: only this one; None: all.
        repair: compute those again that differ, under their locks and with rows in the outbox.
            Seasons that take no changes are left as they are.
        told: called after each slice with the rankings done and how many there are.

    Raises:
        BoardUnknown: there is no such board.

    Source: `schema/functions/recount_slice.sql`, `schema/functions/remake_standings.sql`.
    """
    found = Recomputation()
    rankings = yield Query(_RANKINGS, (board,))
    if board is not None and not (yield Query("SELECT FROM truerank.boards(%s)", (board,))):
        raise BoardUnknown(f"there is no board {board}")
    for key, label, ranking, may_change in rankings:
        after = ""
        while True:
            (head, *rows) = yield Query(SLICE, (ranking, after, MEMBERS_PER_SLICE))
            last, _, members, *_ = head
            mended = repair and may_change and (yield from _mend(ranking, [r[0] for r in rows]))
            found.members += members
            found.differing += [_differing(key, label, row, mended=bool(mended)) for row in rows]
            if told is not None:
                told(found.rankings, len(rankings))
            if members < MEMBERS_PER_SLICE:
                break
            after = last
        found.rankings += 1
    return found


def _mend(ranking: int, members: list[str]) -> Steps[bool]:
    """Compute standings again; whether the season takes changes."""
    for at in range(0, len(members), _MEMBERS_PER_REPAIR):
        some = members[at : at + _MEMBERS_PER_REPAIR]
        ((changed,),) = yield Query(_REMAKE, (ranking, some))
        if changed == _SETTLED:
            return False
    return True


def _differing(board: str, season: str, row: tuple[Any, ...], *, mended: bool) -> Differing:
    member, kind, _, stored, version, counted = row
    return Differing(
        board=board,
        season=season,
        member=member,
        kind=kind,
        stored=stored,
        version=version,
        recomputed=counted,
        mended=mended,
    )
