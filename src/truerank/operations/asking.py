"""Questions about scores and ranks rather than about members."""

from collections.abc import Iterable, Sequence

from truerank.command import board as boards
from truerank.model import Consistency, Histogram, Need, Numbering, Page, PageRequest, Source
from truerank.operations.base import Base
from truerank.operations.choosing import called, consistency_named, source_named
from truerank.read.answers import ANY
from truerank.read.cohorts import InCohort, in_cohort
from truerank.read.histogram import spread
from truerank.read.history import looks_back
from truerank.read.projected import keeps
from truerank.steps import Steps

_FALLBACKS = {Need.ANY, Need.AT_LEAST, Need.MAX_AGE}


class Asking(Base):
    """What a score or a rank means in a season."""

    def between(
        self,
        board: str,
        score_min: int | str | None = None,
        score_max: int | str | None = None,
        season: str | None = None,
        *,
        limit: int = 10,
        offset: int = 0,
        cursor: str | None = None,
        names: bool = False,
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[Page]:
        """The members whose scores lie between two, both included, in the board's order.

        Args:
            board: the board's key.
            score_min: in the board's unit; None: no bound.
            score_max: likewise.
            season: as in `top`.
            limit: rows, 0 to 1000.
            offset: rows between the bounds that are passed over, from 0.
            cursor: as in `top`; with the same bounds again.
            names: as in `top`.
            numbering: as in `top`; ranks are those of the whole season.
            consistency: as in `top`.
            source: as in `top`.
            cohort: as in `top`.
            cohort_of: as in `top`.

        Returns:
            A page whose `matching` says how many there are.
        """
        request = PageRequest(
            offset=offset,
            limit=limit,
            cursor=cursor,
            score_min=score_min,
            score_max=score_max,
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return self._asked(
            board, in_cohort(season, cohort, cohort_of), request, consistency, source, names=names
        )

    def counts(
        self,
        board: str,
        scores: Iterable[int | str],
        season: str | None = None,
        *,
        ties: Sequence[int] = (),
        numbering: Numbering | str = Numbering.COMPETITION,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[Page]:
        """How many are better than each of up to 1000 scores, how many share it, and its rank.

        The rank is the one that whoever reached the score now would have: `better + 1` in
        `competition` numbering, `better + equal + 1` in `ordinal`, being the last to reach it; in
        `dense` one more than there are better scores with their tie-breaks, whoever has them.

        Args:
            board: the board's key.
            scores: in the board's unit.
            season: as in `top`.
            ties: the tie-breaks beside each score; without them equals are those of equal score,
                and none of them is better.
            numbering: of the ranks, as in `top`.
            consistency: as in `top`.
            source: as in `top`.
            cohort: as in `top`.
            cohort_of: as in `top`.

        Returns:
            A page with `counts` in the order asked.
        """
        request = PageRequest(
            scores=tuple((score, tuple(ties)) for score in scores),
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return self._asked(
            board, in_cohort(season, cohort, cohort_of), request, consistency, source
        )

    def histogram(
        self,
        board: str,
        edges: Sequence[int | str],
        season: str | None = None,
        *,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[Histogram]:
        """How many members have scores below, between and from up to 1000 edges on.

        Args:
            board: the board's key.
            edges: scores in the board's unit, rising; each begins a bucket.
            season: as in `top`.
            consistency: as in `top`.
            source: as in `top`.
            cohort: as in `top`.
            cohort_of: as in `top`.

        Raises:
            InvalidInput: the edges don't rise.
        """
        with called(scores="edges"):
            page = yield from self.counts(
                board,
                edges,
                season,
                consistency=consistency,
                source=source,
                cohort=cohort,
                cohort_of=cohort_of,
            )
        # Once it was counted: then the board is that of the page.
        found, _ = yield from self._known.board(board)
        return spread(found, page)

    def _asked(
        self,
        board: str,
        season: str | InCohort | None,
        request: PageRequest,
        consistency: Consistency | str,
        source: Source | str | None,
        *,
        names: bool = False,
    ) -> Steps[Page]:
        needed, insisted = consistency_named(consistency), source_named(source)
        with self._meter.watching("read"):
            page = yield from self._answers.page(
                board, season, request, consistency=needed, source=insisted
            )
        asked = str(needed.need) if insisted is None else "insisted"  # no fallback then
        if looks_back(request):
            asked = "history"
        if page.freshness.source is Source.DATABASE and asked in _FALLBACKS:
            found, _ = yield from self._known.board(board)
            asked = asked if keeps(found, request) else "not_kept"
        self._meter.read_answered(page.freshness.source, asked)
        return (yield from self._names.added(page)) if names else page
