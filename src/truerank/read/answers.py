"""Which source answers, and what is remembered between questions.

The default is the projection, and PostgreSQL where that isn't whole; never both in one answer.
"""

import threading
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from truerank.command.board import find_board
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
from truerank.read import cursors, database, projected, settled
from truerank.read.checking import Outcome, compare
from truerank.read.consistency import Judge
from truerank.read.floors import Floors
from truerank.read.season import find_season, shown_season
from truerank.read.waiting import pauses
from truerank.settings import Settings
from truerank.steps import Steps, hurried

LIMIT_MAX = 1000
_OFFSET_MAX = 2**31 - 1
_REMEMBERED_MAX = 10_000
_AWAY_S = 5.0
_HURRY_S = 2.0  # for what is remembered, where the server stands still
ANY = Consistency()


class Question(msgspec.Struct, frozen=True):
    """What is asked of one ranking, and the source's epoch as far as it is known."""

    board: Board
    season: Season
    request: PageRequest
    epoch: str


@dataclass(frozen=True, slots=True)
class _Remembered:
    board: Board
    epoch: str
    until: float


@dataclass(frozen=True, slots=True)
class _RememberedSeason:
    season: Season
    shown: Season  # another ranking where it is frozen
    until: float


class Answers:
    """Answers questions for one client; remembers boards, seasons and generations."""

    def __init__(self, settings: Settings) -> None:
        self._prefix = settings.prefix
        self._judge_of_any = Judge(ANY, fallback_after_ms=settings.fallback_after_ms)
        self._remember_s = settings.board_cache_ms / 1000
        self._fallback_after_ms = settings.fallback_after_ms
        self._fallbacks = threading.Semaphore(settings.fallback_max)
        self._not_kept = threading.Semaphore(settings.fallback_max)
        self._falling_back = 0
        self._pointers = projected.Pointers()
        self.floors = Floors()
        self._boards: dict[str, _Remembered] = {}
        self._operator = settings.operator
        self._seasons: dict[tuple[int, str | None], _RememberedSeason] = {}
        self._away_until: float | None = None  # PostgreSQL did not answer: not asked before this
        self.on_projected: Callable[[Question, Page], None] = _nothing  # told of such answers

    def page(
        self,
        board_key: str,
        season_label: str | None,
        request: PageRequest,
        *,
        consistency: Consistency = ANY,
        source: Source | None = None,
    ) -> Steps[Page]:
        """Answer one question about one season of a board.

        Args:
            board_key: exact text.
            season_label: None: `all` where the board has it, else the current season.
            request: what to read.
            consistency: how fresh the answer must be.
            source: insist on one source; None: the projection, or PostgreSQL where the projection
                isn't whole or not fresh enough.

        Raises:
            BoardUnknown, SeasonUnknown: there is nothing to read.
            InvalidInput: a number is out of range, or a text is no token; `field` names it.
            ProjectionUnavailable, DatabaseUnavailable: the source insisted on, or both, are away.
            NumberingNotKept: the projection was insisted on, and doesn't count so.
            NotFreshEnough: the source insisted on is older than allowed.
            NotCommittedYet: the token's transaction isn't visible in PostgreSQL either.
            EpochChanged: PostgreSQL went backwards since the token was given.
            NotSettled: a settled result was asked for, and the season isn't final.
            Busy: PostgreSQL answers as many readers as it may.
        """
        check_request(request)
        judge = (
            self._judge_of_any
            if consistency is ANY
            else Judge(consistency, fallback_after_ms=self._fallback_after_ms)
        )
        judge.check_asked(request)
        board, season, epoch = yield from self.located(board_key, season_label, request.cursor)
        if request.token is not judge.compares:
            request = replace(request, token=judge.compares)
        question = Question(board, season, request, epoch)
        page = yield from self._page(question, judge, consistency, source)
        if season.frozen_at is None:
            return page
        freshness = replace(page.freshness, frozen_at=season.frozen_at)
        return replace(page, freshness=freshness)

    def _page(
        self, question: Question, judge: Judge, consistency: Consistency, source: Source | None
    ) -> Steps[Page]:
        need = consistency.need
        if source is Source.PROJECTION and (need is Need.AUTHORITATIVE or need is Need.SETTLED):
            raise InvalidInput(f"the projection can't be {need.value}", field="consistency")
        if need is Need.SETTLED:
            if question.season.frozen_at is not None:
                raise NotSettled(f"season {question.season.label} is frozen until it is revealed")
            return (yield from settled.read_page(question.board, question.season, question.request))
        if source is Source.DATABASE or need is Need.AUTHORITATIVE:
            return judge.of_database((yield from self._database(question)))
        page, fresh = yield from self._projected_in_time(
            question, judge, insisted=source is not None
        )
        if fresh:
            assert page is not None, "nothing can't be fresh"
            self.on_projected(question, page)
            return page
        if source is Source.PROJECTION:
            raise NotFreshEnough("the projection is older than allowed")
        try:
            return judge.of_database((yield from self._limited(question)))
        except (Busy, DatabaseUnavailable) as exc:
            if page is None or need is Need.AT_LEAST:
                raise
            if need is Need.MAX_AGE:
                raise NotFreshEnough(f"the projection is older than allowed, and {exc}") from exc
            return page  # any answer was asked for, and this one tells its age

    def _projected_in_time(
        self, question: Question, judge: Judge, *, insisted: bool
    ) -> Steps[tuple[Page | None, bool]]:
        """The projection's answer, and whether it is, or became within the wait, fresh enough."""
        deadline = time.monotonic() + judge.wait_s
        looks = pauses(deadline)
        asked = False
        while True:
            page = yield from self._projected(question, insisted=insisted)
            if page is None:
                return None, False
            if judge.allows(page.freshness):
                return page, True
            if judge.answers_pending:
                return judge.pending(page), True
            if judge.waits and not asked:
                # A wait for a transaction that is still open would be in vain.
                asked = True
                with suppress(DatabaseUnavailable):
                    yield from hurried(judge.check_committed(), _HURRY_S)
            if not judge.waits or (yield next(looks)) > deadline:
                return page, False

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
        floor = yield from self.floors.before(group)
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
        self.floors.saw(group, page.freshness)
        return page

    def _database(self, question: Question) -> Steps[Page]:
        return (yield from database.read_page(question.board, question.season, question.request))

    def _limited(self, question: Question) -> Steps[Page]:
        # A cache that is away must not take its source with it: what is too much is refused. What
        # the cache never answers has a limit of its own, so that neither uses up the other's.
        kept = projected.keeps(question.board, question.request)
        limit = self._fallbacks if kept else self._not_kept
        if not limit.acquire(blocking=False):
            raise Busy("PostgreSQL answers as many readers as it may; try again")
        self._falling_back += kept
        try:
            return (yield from self._database(question))
        finally:
            self._falling_back -= kept
            limit.release()

    def check(self, question: Question) -> Steps[Outcome]:
        """Ask both sources the same, and compare them where that means something.

        Not while PostgreSQL answers readers instead of the projection, or is away.
        """
        if self._falling_back or self._away_until is not None:
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

    def located(
        self, board_key: str, season_label: str | None, cursor: str | None = None
    ) -> Steps[tuple[Board, Season, str]]:
        """The board, the season and the source's epoch that a question is about.

        Raises:
            BoardUnknown, SeasonUnknown: there is none.
            InvalidInput: the cursor is none.
        """
        known = self._remembered(board_key, season_label) if cursor is None else None
        if known is not None:
            return known
        board, epoch = yield from self.board(board_key)
        if season_label is None and cursor is not None:
            # Whoever pages through the current season goes on in it when another begins.
            season_label = cursors.parse(cursor).season
        season = yield from self.shown(board, season_label)
        return board, season, epoch

    def _remembered(self, key: str, label: str | None) -> tuple[Board, Season, str] | None:
        """What `located` answers, where it is all remembered and can't be over yet."""
        now = time.monotonic()
        board = self._boards.get(key)
        if board is None or now > board.until:
            return None
        season = self._seasons.get((board.board.id, label))
        if season is None or now > season.until:
            return None
        if label is None and season.season.ends_at is not None:
            return None
        return board.board, season.shown, board.epoch

    def board(self, key: str) -> Steps[tuple[Board, str]]:
        """A board and the source's epoch, remembered for a short while.

        While PostgreSQL is away, what was remembered stays good: ranks don't depend on it.
        """
        now = time.monotonic()
        known = self._boards.get(key)
        if known is None or self._asks(now, known.until):
            try:
                asked = find_board(key)
                board, epoch, privacy_tick = yield from (
                    asked if known is None else hurried(asked, _HURRY_S)
                )
            except DatabaseUnavailable:
                self._away_until = time.monotonic() + _AWAY_S
                if known is None:
                    raise
            else:
                self._away_until = None
                _make_room(self._boards)
                known = self._boards[key] = _Remembered(board, epoch, now + self._remember_s)
                self.floors.learn(board.group, privacy_tick, asked_at=now, epoch=epoch)
        return known.board, known.epoch

    def forget(self, key: str) -> None:
        """Read this board's settings, and the states of its seasons, before the next answer."""
        known = self._boards.pop(key, None)
        if known is not None:
            for season in [each for each in self._seasons if each[0] == known.board.id]:
                self._seasons.pop(season, None)

    def season(self, board: Board, label: str | None) -> Steps[Season]:
        """The season a label names, remembered for a short while, never beyond its end."""
        return (yield from self._season(board, label)).season

    def shown(self, board: Board, label: str | None) -> Steps[Season]:
        """The same as readers are shown it: where it is frozen, with the ranking of back then."""
        return (yield from self._season(board, label)).shown

    def frozen(self, board_id: int) -> set[str]:
        """The labels of a board's seasons that are known to be frozen at this moment."""
        now = time.monotonic()
        return {
            known.season.label
            for (of, _), known in list(self._seasons.items())
            if of == board_id and known.shown.frozen_at is not None and now <= known.until
        }

    def _season(self, board: Board, label: str | None) -> Steps[_RememberedSeason]:
        now = time.monotonic()
        known = self._seasons.get((board.id, label))
        if known is not None:
            ends_at = known.season.ends_at
            over = label is None and ends_at is not None and ends_at <= datetime.now(UTC)
            if not self._asks(now, 0.0 if over else known.until):
                return known
        try:
            asked = self._found(board, label)
            season, shown = yield from (asked if known is None else hurried(asked, _HURRY_S))
        except DatabaseUnavailable:
            self._away_until = time.monotonic() + _AWAY_S
            if known is None:
                raise
            return known
        self._away_until = None
        _make_room(self._seasons)
        known = self._seasons[board.id, label] = _RememberedSeason(
            season, shown, now + self._remember_s
        )
        return known

    def _found(self, board: Board, label: str | None) -> Steps[tuple[Season, Season]]:
        season = yield from find_season(board, label)
        if self._operator:
            return season, season
        now = time.monotonic()
        shown, privacy_tick = yield from shown_season(season)
        if privacy_tick is not None:
            # Copies from before it was frozen don't have the ranking.
            self.floors.learn(board.group, privacy_tick, asked_at=now)
        return season, shown

    def _asks(self, now: float, until: float) -> bool:
        """Whether to read again what is remembered until some time.

        While PostgreSQL is away every read would wait for it: then one asks, now and again.
        """
        if now <= until:
            return False
        if self._away_until is not None:
            if now <= self._away_until:
                return False
            self._away_until = now + _AWAY_S
        return True


def check_request(request: PageRequest) -> None:
    """Refuse numbers and ids that no answer can be given for.

    Raises:
        InvalidInput: `field` names what is out of range.
    """
    check_slice(request.limit, request.offset)
    _check_whole("around_limit", request.around_limit, LIMIT_MAX)
    for name, asked in (("members", request.members), ("scores", request.scores)):
        if len(asked) > LIMIT_MAX:
            _check_whole(name, len(asked), LIMIT_MAX)
    if request.around_rank is not None:
        _check_whole("rank", request.around_rank, _OFFSET_MAX, least=1)
    if request.cursor is not None and request.offset:
        raise InvalidInput("a page starts at a cursor or at an offset, not both", field="offset")
    for member in request.members:
        check_member(member)
    if request.around is not None:
        check_member(request.around)


def check_slice(limit: int, offset: int) -> None:
    """Refuse a slice that no answer has.

    Raises:
        InvalidInput: `limit` is outside 0 to 1000, or `offset` outside 0 to 2^31 - 1.
    """
    _check_whole("limit", limit, LIMIT_MAX)
    _check_whole("offset", offset, _OFFSET_MAX)


def _check_whole(name: str, value: int, high: int, *, least: int = 0) -> None:
    """Refuse anything but a whole number from `least` to `high`.

    Raises:
        InvalidInput: `field` is the name.
    """
    if type(value) is not int or not least <= value <= high:
        raise InvalidInput(f"{name} is a whole number from {least} to {high}", field=name)


def _nothing(_question: Question, _page: Page) -> None:
    pass


def _make_room(remembered: MutableMapping[Any, Any]) -> None:
    if len(remembered) >= _REMEMBERED_MAX:
        remembered.clear()
