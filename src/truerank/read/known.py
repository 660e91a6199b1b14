"""What is remembered of boards and seasons between questions, for a short while.

While PostgreSQL is away, what was remembered stays good: ranks don't depend on it.
"""

import time
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from truerank.command.board import find_board
from truerank.errors import CursorGone, DatabaseUnavailable, SeasonUnknown
from truerank.model import Board, Season
from truerank.read import cursors
from truerank.read.cohorts import InCohort, find_cohort, is_current
from truerank.read.floors import Floors
from truerank.read.season import find_season, frozen_rankings, shown_season
from truerank.settings import Settings
from truerank.steps import Steps, hurried

_REMEMBERED_MAX = 10_000
_AWAY_S = 5.0
_HURRY_S = 2.0  # for what is remembered, where the server stands still


@dataclass(frozen=True, slots=True)
class _Remembered:
    board: Board
    epoch: str
    until: float


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
        self._away_until: float | None = None  # PostgreSQL did not answer: not asked before this
        self.floors = Floors()

    @property
    def operator(self) -> bool:
        """Whether what is frozen is read as it goes on."""
        return self._operator

    @property
    def away(self) -> bool:
        """Whether PostgreSQL did not answer when it was asked last."""
        return self._away_until is not None

    def located(
        self, board_key: str, season_label: str | InCohort | None, cursor: str | None = None
    ) -> Steps[tuple[Board, Season, str]]:
        """The board, the season and the source's epoch that a question is about.

        Raises:
            BoardUnknown, SeasonUnknown: there is none.
            CursorGone: the season that the cursor names is gone.
            InvalidInput: the cursor is none.
        """
        known = self._remembered(board_key, season_label) if cursor is None else None
        if known is not None:
            return known
        board, epoch = yield from self.board(board_key)
        named = season_label
        if season_label is None and cursor is not None:
            # Whoever pages through the current season goes on in it when another begins.
            season_label = cursors.parse(cursor).season
        elif (
            isinstance(season_label, InCohort)
            and season_label.season is None
            and cursor is not None
        ):
            season_label = replace(season_label, season=cursors.parse(cursor).season)
        try:
            season = yield from self.shown(board, season_label)
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
            self._frozen.pop(known.board.id, None)

    def season(self, board: Board, label: str | InCohort | None) -> Steps[Season]:
        """The season a label names, remembered for a short while, never beyond its end."""
        return (yield from self.both(board, label)).season

    def shown(self, board: Board, label: str | InCohort | None) -> Steps[Season]:
        """The same as readers are shown it: where it is frozen, with the ranking of back then."""
        return (yield from self.both(board, label)).shown

    def frozen(self, board_id: int) -> Steps[frozenset[int]]:
        """The rankings of a board's seasons that are frozen, remembered for a short while.

        None for operators. While PostgreSQL is away, what was remembered stays good.
        """
        if self._operator:
            return frozenset()
        now = time.monotonic()
        known, until = self._frozen.get(board_id, (frozenset(), 0.0))
        if self._asks(now, until):
            try:
                known = yield from hurried(frozen_rankings(board_id), _HURRY_S)
            except DatabaseUnavailable:
                self._away_until = time.monotonic() + _AWAY_S
            else:
                self._away_until = None
                _make_room(self._frozen)
                self._frozen[board_id] = known, now + self._remember_s
        return known

    def both(self, board: Board, label: str | InCohort | None) -> Steps[RememberedSeason]:
        """The season a label names, and the same as readers are shown it."""
        now = time.monotonic()
        known = self._seasons.get((board.id, label))
        if known is not None:
            ends_at = known.season.ends_at
            over = is_current(label) and ends_at is not None and ends_at <= datetime.now(UTC)
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
        known = self._seasons[board.id, label] = RememberedSeason(
            season, shown, now + self._remember_s
        )
        return known

    def _found(self, board: Board, label: str | InCohort | None) -> Steps[tuple[Season, Season]]:
        if isinstance(label, InCohort):
            cohort = yield from find_cohort(board, label, operator=self._operator)
            season = yield from find_season(board, cohort.season)
            season = replace(season, ranking=cohort.ranking, cohort=cohort.number)
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


def _make_room(remembered: MutableMapping[Any, Any]) -> None:
    if len(remembered) >= _REMEMBERED_MAX:
        remembered.clear()
