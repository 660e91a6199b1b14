"""Which source answers, and what is remembered between questions.

The default is the projection, and PostgreSQL where that isn't whole; never both in one answer.
"""

import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import redis

from truerank.command.board import find_board
from truerank.command.submit import check_text
from truerank.errors import DatabaseUnavailable, InvalidInput, ProjectionUnavailable
from truerank.model import Board, Page, PageRequest, Season, Source
from truerank.read import database, projected
from truerank.read.season import find_season
from truerank.steps import Steps

LIMIT_MAX = 1000
_OFFSET_MAX = 2**31 - 1
_MEMBER_CHARS_MAX = 200
_REMEMBERED_MAX = 10_000
_AWAY_S = 5.0
_SILENT_S = 1.0


@dataclass(frozen=True, slots=True)
class _Remembered:
    board: Board
    epoch: str
    until: float


class Answers:
    """Answers questions for one client; remembers boards, seasons and generations."""

    def __init__(self, *, prefix: str, remember_ms: int) -> None:
        self._prefix = prefix
        self._remember_s = remember_ms / 1000
        self._pointers = projected.Pointers()
        self._boards: dict[str, _Remembered] = {}
        self._seasons: dict[tuple[int, str | None], tuple[Season, float]] = {}
        self._away_until: float | None = None  # PostgreSQL did not answer: not asked before this
        self._silent_until: float | None = None  # the same of Redis

    def page(
        self,
        board_key: str,
        season_label: str | None,
        request: PageRequest,
        *,
        source: Source | None = None,
    ) -> Steps[Page]:
        """Answer one question about one season of a board.

        Args:
            board_key: exact text.
            season_label: None: `all` where the board has it, else the current season.
            request: what to read.
            source: insist on one source; None: the projection, or PostgreSQL where it isn't whole.

        Raises:
            BoardUnknown, SeasonUnknown: there is nothing to read.
            InvalidInput: a number is out of range; `field` names it.
            ProjectionUnavailable, DatabaseUnavailable: the source insisted on, or both, are away.
        """
        check_request(request)
        board, epoch = yield from self.board(board_key)
        season = yield from self.season(board, season_label)
        if source is Source.PROJECTION or (source is None and self._asks_redis()):
            try:
                page = yield from projected.read_page(
                    board,
                    season,
                    request,
                    prefix=self._prefix,
                    pointers=self._pointers,
                    epoch=epoch,
                )
            except ProjectionUnavailable as exc:
                self._silent_until = time.monotonic() + _SILENT_S if _is_silence(exc) else None
                if source is Source.PROJECTION:
                    raise
            else:
                self._silent_until = None
                return page
        return (yield from database.read_page(board, season, request))

    def board(self, key: str) -> Steps[tuple[Board, str]]:
        """A board and the source's epoch, remembered for a short while.

        While PostgreSQL is away, what was remembered stays good: ranks don't depend on it.
        """
        now = time.monotonic()
        known = self._boards.get(key)
        if known is None or self._asks(now, known.until):
            try:
                board, epoch = yield from find_board(key)
            except DatabaseUnavailable:
                self._away_until = time.monotonic() + _AWAY_S
                if known is None:
                    raise
            else:
                self._away_until = None
                _make_room(self._boards)
                known = self._boards[key] = _Remembered(board, epoch, now + self._remember_s)
        return known.board, known.epoch

    def forget(self, key: str) -> None:
        """Read this board's settings again before the next answer."""
        self._boards.pop(key, None)

    def season(self, board: Board, label: str | None) -> Steps[Season]:
        """The season a label names, remembered for a short while, never beyond its end."""
        now = time.monotonic()
        known = self._seasons.get((board.id, label))
        if known is not None:
            season, until = known
            over = (
                label is None and season.ends_at is not None and season.ends_at <= datetime.now(UTC)
            )
            if not self._asks(now, 0.0 if over else until):
                return season
        try:
            season = yield from find_season(board, label)
        except DatabaseUnavailable:
            self._away_until = time.monotonic() + _AWAY_S
            if known is None:
                raise
            return known[0]
        self._away_until = None
        _make_room(self._seasons)
        self._seasons[board.id, label] = (season, now + self._remember_s)
        return season

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

    def _asks_redis(self) -> bool:
        """Whether to ask Redis first.

        A server that is silent costs every read its deadline: then one asks, now and again. Where
        PostgreSQL is away too there is nobody else to ask.
        """
        if self._silent_until is None or self._away_until is not None:
            return True
        now = time.monotonic()
        if now <= self._silent_until:
            return False
        self._silent_until = now + _SILENT_S
        return True


def check_request(request: PageRequest) -> None:
    """Refuse numbers and ids that no answer can be given for.

    Raises:
        InvalidInput: `field` names what is out of range.
    """
    check_slice(request.limit, request.offset)
    _check_whole("around_limit", request.around_limit, LIMIT_MAX)
    _check_whole("members", len(request.members), LIMIT_MAX)
    for member in (*request.members, *([request.around] if request.around is not None else [])):
        check_text(member, "member")
        if not 1 <= len(member) <= _MEMBER_CHARS_MAX:
            raise InvalidInput("a member's id has 1 to 200 characters", field="member")


def check_slice(limit: int, offset: int) -> None:
    """Refuse a slice that no answer has.

    Raises:
        InvalidInput: `limit` is outside 0 to 1000, or `offset` outside 0 to 2^31 - 1.
    """
    _check_whole("limit", limit, LIMIT_MAX)
    _check_whole("offset", offset, _OFFSET_MAX)


def _check_whole(name: str, value: int, high: int) -> None:
    """Refuse anything but a whole number from 0 to `high`.

    Raises:
        InvalidInput: `field` is the name.
    """
    if type(value) is not int or not 0 <= value <= high:
        raise InvalidInput(f"{name} is a whole number from 0 to {high}", field=name)


def _is_silence(exc: ProjectionUnavailable) -> bool:
    # A copy that isn't whole is the matter of one group, and told at once.
    return isinstance(exc.__cause__, redis.ConnectionError | redis.TimeoutError | OSError)


def _make_room(remembered: MutableMapping[Any, Any]) -> None:
    if len(remembered) >= _REMEMBERED_MAX:
        remembered.clear()
