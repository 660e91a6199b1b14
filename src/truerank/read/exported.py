"""A whole season, slice by slice: what to ask PostgreSQL in one transaction, and what it means.

Board, season, epoch and instant are read in the transaction of the rows, so they are true of them.
"""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from truerank.command.board import choice, find_board
from truerank.errors import InvalidInput, NotSettled
from truerank.model import Board, Freshness, Numbering, Season, Source
from truerank.read.cohorts import InCohort, cohort_season, in_cohort, list_cohorts
from truerank.read.revisions import check_revision, settlement_of
from truerank.read.scores import reached_at, row_bytes, score_text
from truerank.read.season import find_season, shown_season
from truerank.steps import Query, Steps

# The transaction's instant: its snapshot is taken later.
_BEGUN = "SELECT now(), i.id FROM truerank.installation() AS i"
_SLICE = """
    SELECT member, sort_key, ties, version, cohort
    FROM truerank.export_slice(%s, %s, %s, %s, %s)"""
_SETTLED_SLICE = """
    SELECT ordinal, competition, dense, member, sort_key, ties, stand_in, cohort
    FROM truerank.export_settled(%s, %s, %s, %s, %s)"""


class ExportedRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One place of a season."""

    rank: int
    member: str
    score: str  # in the board's unit, exact
    ties: tuple[int, ...]
    version: int
    reached_at: datetime
    cohort: int | None = None  # the member's, of a season that is divided; None: it is in none


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHead:
    """What rows are of, told by the transaction that they come from."""

    board: Board
    season: Season
    numbering: Numbering
    installation: str
    freshness: Freshness
    divided: bool = False  # into cohorts: rows name them

    @property
    def as_of(self) -> datetime:
        """All that was acknowledged before is in the rows, and of a freeze nothing later."""
        as_of = self.freshness.frozen_at or self.freshness.projected_through
        assert as_of is not None, "PostgreSQL tells its instant"
        return as_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be exported.

    `settled`: the settlement of a final season, also of who was hidden or banned since, under
    their own ids: what payouts may read. `revision`: of it; None: the newest.
    """

    board: str
    season: str | None = None
    numbering: Numbering | str = Numbering.COMPETITION
    settled: bool = False
    revision: int | None = None
    cohort: int | None = None  # of this cohort of the season alone, by its number
    cohort_of: str | None = None  # or of the one that this member is in
    operator: bool = False  # sees what is going on behind a freeze


class Slices:
    """The rows of one season in order; all steps belong into one REPEATABLE READ transaction.

    Args:
        wish: what is wanted.
        rows_max: how many rows one statement reads.

    Raises:
        InvalidInput: the numbering is none, a revision is asked for of what isn't settled, or a
            cohort makes no sense.
    """

    def __init__(self, wish: Wish, *, rows_max: int) -> None:
        self._numbering = choice(Numbering, wish.numbering, "numbering")
        if wish.revision is not None and not wish.settled:
            raise InvalidInput("only a settlement has revisions", field="revision")
        check_revision(wish.revision)
        self._asked = in_cohort(wish.season, wish.cohort, wish.cohort_of)
        self._wish = wish
        self._rows_max = rows_max
        self._after = (b"", "")  # sort key and member of the last row
        self._place = self._rank = 0
        self._equals = b""
        self.ended = False

    def head(self) -> Steps[ExportHead]:
        """What the rows are of; the first steps of the transaction.

        Raises:
            BoardUnknown, SeasonUnknown: there is nothing to read.
            NotInCohort: there is no such cohort.
            SeasonFrozen: the public is shown the season as it was, and so none of its cohorts.
            NotSettled: there is no such settlement, or not for who asks.

        Source: `schema/functions/installation.sql`, `boards.sql`, `find_season.sql`,
            `find_cohort.sql`, `cohorts.sql`, `shown_ranking.sql`, `settlements.sql`.
        """
        ((begun_at, installation),) = yield Query(_BEGUN)
        board, epoch, _ = yield from find_board(self._wish.board)
        season, divided = yield from self._season(board)
        shown_through = begun_at
        if self._wish.settled:
            season = yield from self._settled(board, season)
            shown_through = season.settled_at
        return ExportHead(
            board=board,
            season=season,
            numbering=self._numbering,
            installation=str(installation),
            freshness=Freshness(
                source=Source.DATABASE,
                epoch=epoch,
                generation=None,
                tick=None,
                projected_through=shown_through,
                staleness_ms=0,
                settled=self._wish.settled,
                frozen_at=season.frozen_at,
            ),
            divided=divided,
        )

    def next(self, head: ExportHead) -> Steps[list[ExportedRow]]:
        """The next rows; `ended` says whether they are the last.

        Source: `schema/functions/export_slice.sql`, `export_settled.sql`.
        """
        if self._wish.settled:
            rows = yield from self._next_settled(head)
        else:
            rows = yield from self._next(head)
        self.ended = len(rows) < self._rows_max
        return rows

    def _season(self, board: Board) -> Steps[tuple[Season, bool]]:
        """What is exported, and whether its rows name cohorts."""
        operator = self._wish.operator
        if isinstance(self._asked, InCohort):
            return (yield from cohort_season(board, self._asked, operator=operator)), True
        season = yield from find_season(board, self._asked)
        if not operator:
            season, _ = yield from shown_season(season)
        if season.frozen_at is not None:
            return season, False
        cohorts = yield from list_cohorts(board, season.label, after=0, limit=1)
        return season, bool(cohorts)

    def _settled(self, board: Board, season: Season) -> Steps[Season]:
        if season.frozen_at is not None:
            raise NotSettled(f"season {season.label} is frozen until it is revealed")
        settlement = yield from settlement_of(board, season, self._wish.revision)
        return season.settled(settlement.settled_at, settlement.revision)

    def _next(self, head: ExportHead) -> Steps[list[ExportedRow]]:
        board = head.board
        equal_bytes = row_bytes(board)
        only = head.season.cohort
        looked_up = head.divided and only is None
        slice_ = (head.season.ranking, *self._after, self._rows_max, looked_up)
        rows: list[ExportedRow] = []
        for member, key, ties, version, cohort in (yield Query(_SLICE, slice_)):
            self._after = key, member
            self._place += 1
            if self._numbering is Numbering.ORDINAL:
                self._rank = self._place
            elif key[:equal_bytes] != self._equals:
                dense = self._numbering is Numbering.DENSE
                self._rank = self._rank + 1 if dense else self._place
                self._equals = key[:equal_bytes]
            rows.append(
                ExportedRow(
                    rank=self._rank,
                    member=member,
                    score=score_text(board, key),
                    ties=tuple(ties or ()),
                    version=version,
                    reached_at=reached_at(key, equal_bytes),
                    cohort=cohort or only,
                )
            )
        return rows

    def _next_settled(self, head: ExportHead) -> Steps[list[ExportedRow]]:
        board = head.board
        equal_bytes = row_bytes(board)
        only = head.season.cohort
        looked_up = head.divided and only is None
        slice_ = (
            head.season.ranking, head.season.revision, self._place, self._rows_max, looked_up,
        )  # fmt: skip
        rows: list[ExportedRow] = []
        for ordinal, competition, dense, member, key, ties, stand_in, cohort in (
            yield Query(_SETTLED_SLICE, slice_)
        ):
            self._place = ordinal
            ranks = {
                Numbering.ORDINAL: ordinal,
                Numbering.COMPETITION: competition,
                Numbering.DENSE: dense,
            }
            rows.append(
                ExportedRow(
                    rank=ranks[self._numbering],
                    member=member,
                    score=score_text(board, key),
                    ties=tuple(ties or ()),
                    # The stand-in's number, which no other row has.
                    version=int.from_bytes(stand_in),
                    reached_at=reached_at(key, equal_bytes),
                    cohort=cohort or only,
                )
            )
        return rows
