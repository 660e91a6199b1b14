"""What is remembered of boards and seasons between questions, for a short while.

While PostgreSQL is away, what was remembered when it went stays good, and what wasn't is looked up
in Redis: ranks don't depend on PostgreSQL.
"""

import math
import time
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from truerank.command.board import find_board
from truerank.errors import Busy, CursorGone, DatabaseUnavailable, SeasonUnknown
from truerank.model import Board, Freshness, Season
from truerank.read import athand, cursors
from truerank.read.athand import BoardAtHand
from truerank.read.cohorts import InCohort, cohort_season, is_current, of_season
from truerank.read.floors import Floors
from truerank.read.reach import Reach
from truerank.read.season import (
    NamedRanking,
    find_season,
    frozen_rankings,
    name_rankings,
    shown_season,
)
from truerank.settings import Settings
from truerank.steps import Steps

_REMEMBERED_MAX = 10_000
_NO_ANSWER = (Busy, DatabaseUnavailable)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Remembered:
    board: Board
    epoch: str
    until: float  # monotonic, in seconds
    read_at: datetime


@dataclass(frozen=True, slots=True)
class RememberedSeason:
    """A season, and what readers are shown of it."""

    season: Season
    shown: Season  # another ranking where it is frozen
    until: float


class Known:
    """The boards and seasons that one client knows, and below what no projection is shown."""

    def __init__(self, settings: Settings) -> None:
        self._remember_s = settings.board_cache_ms / 1000
        self._operator = settings.operator
        self._boards: dict[str, _Remembered] = {}
        self._seasons: dict[tuple[int, str | InCohort | None], RememberedSeason] = {}
        self._frozen: dict[int, tuple[frozenset[int], float]] = {}
        self._named: dict[int, NamedRanking] = {}
        self._prefix = settings.prefix
        self._as_of: dict[int, datetime] = {}  # by board: only where Redis said what it is
        self.floors = Floors()
        self.reach = Reach()

    @property
    def operator(self) -> bool:
        """Whether what is frozen is read as it goes on."""
        return self._operator

    @property
    def away(self) -> bool:
        """Whether PostgreSQL did not answer when it was asked last."""
        return self.reach.away

    def vouches(self, board: Board, freshness: Freshness) -> bool:
        """Whether what is known of a board may be said of an answer of the projection."""
        as_of = self._as_of.get(board.id)
        return as_of is None or athand.vouches(as_of, freshness)

    def located(
        self,
        board_key: str,
        season_label: str | InCohort | None,
        cursor: str | None = None,
        *,
        anew: bool = False,
    ) -> Steps[tuple[Board, Season, str]]:
        """The board, the season and the source's epoch that a question is about.

        Args:
            board_key: exact text.
            season_label: None: the current one.
            cursor: of the page that is gone on from.
            anew: as PostgreSQL has them now, whatever is remembered.

        Raises:
            BoardUnknown, SeasonUnknown: there is none.
            CursorGone: the season that the cursor names is gone.
            InvalidInput: the cursor is none.
        """
        known = None
        if cursor is None and not anew:
            known = self._remembered(board_key, season_label)
        if known is not None:
            return known
        board, epoch = yield from self.board(board_key, anew=anew)
        named = season_label
        if is_current(season_label) and cursor is not None:
            # Whoever pages through the current season goes on in it when another begins.
            season_label = of_season(season_label, cursors.parse(cursor).season)
        try:
            season = (yield from self.both(board, season_label, anew=anew)).shown
        except SeasonUnknown as exc:
            if season_label == named:
                raise
            raise CursorGone(exc.message) from exc  # nobody but the cursor named it
        return board, season, epoch

    def _remembered(
        self, key: str, label: str | InCohort | None
    ) -> tuple[Board, Season, str] | None:
        """What `located` answers, where it is all remembered and can't be over yet."""
        now = time.monotonic()
        board = self._boards.get(key)
        if board is None or now > board.until:
            return None
        season = self._seasons.get((board.board.id, label))
        if season is None or now > season.until:
            return None
        if is_current(label) and season.season.ends_at is not None:
            return None
        return board.board, season.shown, board.epoch

    def board(self, key: str, *, anew: bool = False) -> Steps[tuple[Board, str]]:
        """A board and the source's epoch, remembered for a short while.

        Raises:
            BoardUnknown: there is none.
            DatabaseUnavailable, Busy: PostgreSQL doesn't answer, and Redis doesn't know the board,
                or isn't to be asked.
        """
        now = time.monotonic()
        known = None if anew else self._boards.get(key)
        if known is not None and now <= known.until:
            return known.board, known.epoch
        asks = anew or (self.reach.asks() if known is None else self.reach.asks(known.until))
        if not asks and self._is_old(known):
            known = yield from self._at_hand(key)
        if known is not None and not asks:
            return known.board, known.epoch
        try:
            read_at = datetime.now(UTC)
            asked = self.reach.asked(find_board(key), hurry=not anew)
            board, epoch, privacy_tick = yield from asked
        except _NO_ANSWER:
            if not anew and self._is_old(known):
                known = yield from self._at_hand(key)
            if known is None:
                raise
        else:
            _make_room(self._boards)
            known = _Remembered(board, epoch, now + self._remember_s, read_at)
            self._boards[key] = known
            self._as_of.pop(board.id, None)
            self.floors.learn(board.group, privacy_tick, asked_at=now, epoch=epoch)
        return known.board, known.epoch

    def _is_old(self, known: "_Remembered | RememberedSeason | None") -> bool:
        """Whether something may have changed between when it was good and PostgreSQL's silence."""
        return known is None or known.until < self.reach.silent_since

    def _at_hand(self, key: str) -> Steps[_Remembered | None]:
        """What Redis says of a board, or what is remembered where that is newer, or Redis silent.

        Returns:
            None: there is no such board, as far as anybody knows.
        """
        now = time.monotonic()
        found = yield from athand.read_board(self._prefix, key)
        known = self._boards.get(key)
        told, as_of = found or (None, _NEVER)
        if known is not None and known.read_at >= as_of:
            if self._is_old(known):
                known = self._boards[key] = replace(known, until=now)
        elif told is not None:
            _make_room(self._boards)
            known = self._boards[key] = _Remembered(told.board, told.epoch, now, as_of)
        else:
            self.forget(key)
            known = None
        if told is not None:
            self._learn(told, as_of, now)
        return known

    def _learn(self, told: BoardAtHand, as_of: datetime, now: float) -> None:
        """Take in what Redis says of a board's seasons, where nothing better is remembered."""
        self.floors.raise_to(told.board.group, told.privacy_tick, epoch=told.epoch)
        for remembered in (self._seasons, self._as_of):
            _make_room(remembered)
        self._as_of[told.board.id] = as_of
        # Good until now only, so that PostgreSQL is asked as soon as it answers.
        for each in told.seasons:
            named = (told.board.id, each.season.label)
            season = self._seasons.get(named)
            if self._is_old(season):
                shown = each.season if self._operator else each.shown
                self._seasons[named] = RememberedSeason(each.season, shown, now)

    def forget(self, key: str) -> None:
        """Read this board's settings, and the states of its seasons, before the next answer."""
        known = self._boards.pop(key, None)
        if known is not None:
            for season in [each for each in list(self._seasons) if each[0] == known.board.id]:
                self._seasons.pop(season, None)
            self._frozen.pop(known.board.id, None)

    def season(self, board: Board, label: str | InCohort | None) -> Steps[Season]:
        """The season a label names, remembered for a short while, never beyond its end."""
        return (yield from self.both(board, label)).season

    def shown(
        self, board: Board, label: str | InCohort | None, *, anew: bool = False
    ) -> Steps[Season]:
        """The same as readers are shown it: where it is frozen, with the ranking of back then."""
        return (yield from self.both(board, label, anew=anew)).shown

    def frozen(self, board_id: int) -> Steps[frozenset[int]]:
        """The rankings of a board's seasons that are frozen, remembered for a short while.

        None for operators. While PostgreSQL is away, what was remembered stays good.
        """
        if self._operator:
            return frozenset()
        now = time.monotonic()
        known, until = self._frozen.get(board_id, (frozenset(), 0.0))
        if now > until and self.reach.asks(until):
            with suppress(*_NO_ANSWER):
                known = yield from self.reach.asked(frozen_rankings(board_id))
                _make_room(self._frozen)
                self._frozen[board_id] = known, now + self._remember_s
        return known

    def named(self, rankings: frozenset[int]) -> Steps[dict[int, NamedRanking]]:
        """What rankings are of, by number, as far as it is known; remembered for good.

        What isn't remembered can't be told while PostgreSQL is away.
        """
        missing = rankings - self._named.keys()
        if missing and self.reach.asks():
            with suppress(*_NO_ANSWER):
                named = yield from self.reach.asked(name_rankings(missing))
                _make_room(self._named)
                self._named |= named
        return {each: self._named[each] for each in rankings & self._named.keys()}

    def both(
        self, board: Board, label: str | InCohort | None, *, anew: bool = False
    ) -> Steps[RememberedSeason]:
        """The season a label names, and the same as readers are shown it."""
        now = time.monotonic()
        known, over = self._seasons.get((board.id, label)), False
        if known is not None and not anew:
            ends_at = known.season.ends_at
            over = is_current(label) and ends_at is not None and ends_at <= datetime.now(UTC)
            if now <= known.until and not over:
                return known
        good_until = math.inf if known is None else -math.inf if over else known.until
        if not anew and not self.reach.asks(good_until):
            standing_in = yield from self._standing_in(board, label, known, over=over)
            if standing_in is not None:
                return standing_in
        try:
            asked = self.reach.asked(self._found(board, label), hurry=not anew)
            season, shown = yield from asked
        except _NO_ANSWER:
            if anew:
                raise
            standing_in = yield from self._standing_in(board, label, known, over=over)
            if standing_in is None:
                raise
            return standing_in
        _make_room(self._seasons)
        known = RememberedSeason(season, shown, now + self._remember_s)
        self._seasons[board.id, label] = known
        if label is None:
            # Whoever names it, while PostgreSQL is away, asks for what is known.
            self._seasons[board.id, season.label] = known
        return known

    def _standing_in(
        self,
        board: Board,
        label: str | InCohort | None,
        known: RememberedSeason | None,
        *,
        over: bool,
    ) -> Steps[RememberedSeason | None]:
        """What a label names by what is remembered of it, or of the board, or stands in Redis."""
        if isinstance(label, InCohort):
            return known
        if not over and not self._is_old(known):
            return known
        # What was remembered long before may have been frozen since.
        found = self._named_alike(board, label)
        if self._is_old(found):
            yield from self._at_hand(board.spec.key)
            found = self._named_alike(board, label) or known
        if self._is_old(found) and not self.away:
            return None  # PostgreSQL is slow, and tells
        if found is not None:
            found = self._seasons[board.id, label] = replace(found, until=time.monotonic())
        return found

    def _named_alike(self, board: Board, label: str | None) -> RememberedSeason | None:
        if label is not None:
            return self._seasons.get((board.id, label))
        seasons = {
            known.season.label: known
            for (board_id, named), known in list(self._seasons.items())
            if board_id == board.id and isinstance(named, str)
        }
        current = athand.current_of(
            board, [known.season for known in seasons.values()], datetime.now(UTC)
        )
        return None if current is None else seasons[current.label]

    def _found(self, board: Board, label: str | InCohort | None) -> Steps[tuple[Season, Season]]:
        if isinstance(label, InCohort):
            season = yield from cohort_season(board, label, operator=self._operator)
            return season, season
        season = yield from find_season(board, label)
        if self._operator:
            return season, season
        now = time.monotonic()
        shown, privacy_tick = yield from shown_season(season)
        if privacy_tick is not None:
            # Copies from before it was frozen don't have the ranking.
            self.floors.learn(board.group, privacy_tick, asked_at=now)
        return season, shown


def _make_room(remembered: MutableMapping[Any, Any]) -> None:
    if len(remembered) >= _REMEMBERED_MAX:
        remembered.clear()
