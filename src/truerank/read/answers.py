"""Which source answers.

The default is the projection, and PostgreSQL where that isn't whole; never both in one answer.
"""

import threading
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from truerank.command.submit import check_member
from truerank.errors import (
    Busy,
    DatabaseUnavailable,
    InvalidInput,
    NotFreshEnough,
    NotSettled,
    NumberingNotKept,
    ProjectionUnavailable,
)
from truerank.model import Board, Consistency, Need, Page, PageRequest, Season, Source
from truerank.paging import LIMIT_MAX, OFFSET_MAX, check_many, check_slice, check_whole
from truerank.read import database, history, projected, settled
from truerank.read.checking import Outcome, compare
from truerank.read.cohorts import InCohort, is_current, of_season
from truerank.read.consistency import Judge
from truerank.read.known import Known
from truerank.read.season import season_at
from truerank.read.waiting import pauses
from truerank.settings import Settings
from truerank.steps import Steps, hurried, yielding

_HURRY_S = 2.0  # for what is looked at beside, where the server stands still
ANY = Consistency()
_OF_NOW = frozenset({Need.AUTHORITATIVE, Need.SETTLED})  # nothing that is remembered


class Question(msgspec.Struct, frozen=True):
    """What is asked of one ranking, and the source's epoch as far as it is known."""

    board: Board
    season: Season
    request: PageRequest
    epoch: str


class Answers:
    """Answers questions for one client; remembers where the generations are.

    Args:
        settings: of the client.
        known: what it remembers of boards and seasons.
    """

    def __init__(self, settings: Settings, known: Known) -> None:
        self._prefix = settings.prefix
        self._judge_of_any = Judge(ANY, fallback_after_ms=settings.fallback_after_ms)
        self._known = known
        self._fallback_after_ms = settings.fallback_after_ms
        self._fallbacks = threading.Semaphore(settings.fallback_max)
        self._not_kept = threading.Semaphore(settings.fallback_max)
        self._looking_back = threading.Semaphore(settings.fallback_max)
        self._waiting = threading.Semaphore(settings.waiting_max)
        self._falling_back = 0
        self._pointers = projected.Pointers()
        self.on_projected: Callable[[Question, Page], None] = _nothing  # told of such answers

    def page(
        self,
        board_key: str,
        season_label: str | InCohort | None,
        request: PageRequest,
        *,
        consistency: Consistency = ANY,
        source: Source | None = None,
    ) -> Steps[Page]:
        """Answer one question about one season of a board.

        Args:
            board_key: exact text.
            season_label: None: `all` where the board has it, else the current season, or the one
                that was current at the request's `as_of`; or one cohort of such a season.
            request: what to read.
            consistency: how fresh the answer must be.
            source: insist on one source; None: the projection, or PostgreSQL where the projection
                isn't whole or not fresh enough.

        Raises:
            BoardUnknown, SeasonUnknown, NotInCohort: there is nothing to read.
            SeasonFrozen: a cohort of a season of which the public is shown what it was.
            InvalidInput: a number is out of range, or a text is no token; `field` names it.
            ProjectionUnavailable, DatabaseUnavailable: the source insisted on, or both, are away.
            NumberingNotKept: the projection was insisted on, and doesn't count so.
            NotFreshEnough: the source insisted on is older than allowed.
            NotCommittedYet: the token's transaction isn't visible in PostgreSQL either.
            EpochChanged: PostgreSQL went backwards since the token was given.
            NotSettled: a settled result was asked for, and the season isn't final.
            HistoryForgotten: how the season stood at an instant isn't known any more.
            Busy: PostgreSQL answers as many readers as it may, or as many as may wait for a token.
        """
        check_request(request)
        if history.looks_back(request):
            history.check_asked(request, consistency, source)
            anew = consistency.need in _OF_NOW
            return (yield from self._looked_back(board_key, season_label, request, anew=anew))
        judge = (
            self._judge_of_any
            if consistency is ANY
            else Judge(consistency, fallback_after_ms=self._fallback_after_ms)
        )
        judge.check_asked(request)
        began = time.monotonic()
        board, season, epoch = yield from self._known.located(
            board_key,
            season_label,
            request.cursor,
            anew=consistency.need in _OF_NOW,
        )
        if request.token is not judge.compares:
            request = replace(request, token=judge.compares)
        question = Question(board, season, request, epoch)
        page = yield from self._page(question, judge, consistency, source, began)
        if season.frozen_at is None:
            return page
        freshness = replace(page.freshness, frozen_at=season.frozen_at)
        return replace(page, freshness=freshness)

    def _page(
        self,
        question: Question,
        judge: Judge,
        consistency: Consistency,
        source: Source | None,
        began: float,
    ) -> Steps[Page]:
        need = consistency.need
        if source is Source.PROJECTION and (need is Need.AUTHORITATIVE or need is Need.SETTLED):
            raise InvalidInput(f"the projection can't be {need.value}", field="consistency")
        if need is Need.SETTLED:
            if question.season.frozen_at is not None:
                raise NotSettled(f"season {question.season.label} is frozen until it is revealed")
            asked = settled.read_page(question.board, question.season, question.request)
            return (yield from yielding(asked))
        if source is Source.DATABASE or need is Need.AUTHORITATIVE:
            return judge.of_database((yield from self._database(question)))
        page, fresh = yield from self._projected_in_time(
            question, judge, began, insisted=source is not None
        )
        if fresh:
            assert page is not None, "nothing can't be fresh"
            self.on_projected(question, page)
            return page
        if source is Source.PROJECTION:
            raise NotFreshEnough("the projection is older than allowed")
        # It shows what was asked for, and tells its age.
        stands_in = (
            page is not None and need is not Need.MAX_AGE and not judge.lacks(page.freshness)
        )
        try:
            asked = self._limited(question, began, stands_in=stands_in)
            return judge.of_database((yield from asked))
        except (Busy, DatabaseUnavailable) as exc:
            if page is None or judge.lacks(page.freshness):
                raise
            if not stands_in:
                raise NotFreshEnough(f"the projection is older than allowed, and {exc}") from exc
            return page

    def _projected_in_time(
        self, question: Question, judge: Judge, began: float, *, insisted: bool
    ) -> Steps[tuple[Page | None, bool]]:
        """The projection's answer, and whether it is, or became within the wait, fresh enough."""
        deadline = time.monotonic() + judge.wait_s
        page = yield from self._projected(question, insisted=insisted)
        if page is None:
            return None, False
        if judge.allows(page.freshness):
            return page, True
        if not judge.lacks(page.freshness):
            return page, False
        yield from self._beside(judge.check_epoch(page.freshness), began)
        if judge.answers_pending:
            # What the projection can't tell may never be shown; PostgreSQL can tell.
            return (judge.pending(page), True) if judge.knows(page.freshness) else (page, False)
        if not self._waiting.acquire(blocking=False):
            raise Busy("as many readers as may wait for a write to be shown; try again")
        try:
            # A wait for a transaction that is still open would be in vain.
            yield from self._beside(judge.check_committed(), began)
            looks = pauses(deadline)
            while judge.lacks(page.freshness) and (yield next(looks)) <= deadline:
                page = yield from self._projected(question, insisted=insisted)
                if page is None or judge.allows(page.freshness):
                    return page, page is not None
            return page, False
        finally:
            self._waiting.release()

    def _beside(self, check: Steps[None], began: float) -> Steps[None]:
        """Have PostgreSQL asked for what is said without its answer as well."""
        reach = self._known.reach
        if reach.away or reach.missed_since(began):
            return
        try:
            yield from hurried(check, _HURRY_S)
        except Busy:
            return  # the projection may answer all the same
        except DatabaseUnavailable:
            reach.missed()

    def _projected(self, question: Question, *, insisted: bool) -> Steps[Page | None]:
        try:
            page = yield from self._not_outdated(question)
        except (ProjectionUnavailable, NumberingNotKept, DatabaseUnavailable):
            if insisted:
                raise
            return None
        return page

    def _not_outdated(self, question: Question) -> Steps[Page]:
        group = question.board.group
        if not question.season.projected:
            raise ProjectionUnavailable("the frozen season is on its way to the projection")
        floor = yield from self._known.floors.before(group)
        page = yield from projected.read_page(
            question.board,
            question.season,
            question.request,
            prefix=self._prefix,
            pointers=self._pointers,
            epoch=question.epoch,
        )
        if not floor.allows(page.freshness):
            raise ProjectionUnavailable(f"the copy of group {group} is too old to be shown")
        if not self._known.vouches(question.board, page.freshness):
            raise ProjectionUnavailable("what Redis says of the board is older than the copy")
        self._known.floors.saw(group, page.freshness)
        return page

    def _database(self, question: Question) -> Steps[Page]:
        asked = database.read_page(question.board, question.season, question.request)
        return (yield from yielding(asked))

    def _limited(self, question: Question, began: float, *, stands_in: bool) -> Steps[Page]:
        reach = self._known.reach
        away = reach.away
        # Nobody waits for it twice, nor every reader for what can be done without.
        if reach.missed_since(began) or (stands_in and away and not reach.asks()):
            raise DatabaseUnavailable("PostgreSQL did not answer when it was asked just before")
        # A cache that is away must not take its source with it: what is too much is refused. What
        # the cache never answers has a limit of its own, so that neither uses up the other's.
        kept = projected.keeps(question.board, question.request)
        limit = self._fallbacks if kept else self._not_kept
        if not limit.acquire(blocking=False):
            raise Busy("PostgreSQL answers as many readers as it may; try again")
        self._falling_back += kept
        try:
            asked = self._database(question)
            return (yield from (reach.asked(asked, hurry=stands_in) if away else asked))
        finally:
            self._falling_back -= kept
            limit.release()

    def _looked_back(
        self, key: str, label: str | InCohort | None, request: PageRequest, *, anew: bool
    ) -> Steps[Page]:
        board, _ = yield from self._known.board(key, anew=anew)
        if not self._looking_back.acquire(blocking=False):
            raise Busy("as many readers look back in time as may; try again")
        try:
            if is_current(label) and request.as_of is not None:
                label = of_season(label, (yield from season_at(board, request.as_of)).label)
            known = yield from self._known.both(board, label, anew=anew)
            page = yield from yielding(history.read_page(board, known.season, known.shown, request))
        finally:
            self._looking_back.release()
        freshness = replace(page.freshness, frozen_at=known.shown.frozen_at)
        return replace(page, freshness=freshness)

    def check(self, question: Question) -> Steps[Outcome]:
        """Ask both sources the same, and compare them where that means something.

        Not while PostgreSQL answers readers instead of the projection, or is away.
        """
        if self._falling_back or self._known.away:
            return Outcome.UNJUDGED
        return (
            yield from compare(
                question.board,
                question.season,
                question.request,
                prefix=self._prefix,
                pointers=self._pointers,
                epoch=question.epoch,
            )
        )


def check_request(request: PageRequest) -> None:
    """Refuse numbers and ids that no answer can be given for.

    Raises:
        InvalidInput: `field` names what is out of range.
    """
    check_slice(request.limit, request.offset)
    check_whole("around_limit", request.around_limit, LIMIT_MAX)
    for name, asked in (("members", request.members), ("scores", request.scores)):
        check_many(name, len(asked))
    if request.around_rank is not None:
        check_whole("rank", request.around_rank, OFFSET_MAX, least=1)
    if request.cursor is not None and request.offset:
        raise InvalidInput("a page starts at a cursor or at an offset, not both", field="offset")
    for member in request.members:
        check_member(member)
    if request.around is not None:
        check_member(request.around)


def _nothing(_question: Question, _page: Page) -> None:
    pass
