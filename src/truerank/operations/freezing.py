"""Freezing seasons for the public, and revealing them."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from truerank.command import freezing
from truerank.errors import ProjectionUnavailable
from truerank.model import Freeze
from truerank.operations.base import Base, retried
from truerank.paging import LATEST
from truerank.projection.keys import GroupKeys
from truerank.read.hints import current
from truerank.steps import Commands, Pause, Steps

_WAIT_S = 10.0
_SEASONS_MAX = 1000  # of a board, that are frozen


class Freezing(Base):
    """What everybody but operators is shown from an instant on.

    The calls return once no process shows anything else: what they remember of seasons
    (`board_cache_ms`) and hold of pages (`cache_max_ms`) has passed.
    """

    def freeze_season(
        self,
        board: str,
        season: str | None = None,
        *,
        actor: str,
        reason: str,
        every: bool = False,
        at: datetime | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[Freeze]:
        """Show the public a season as it is now, or at an instant to come, until it is revealed.

        Safe to repeat: a season that is to be frozen later is frozen by then, or now, never later.
        Scores go on; states of members hold for what is shown, too. Whoever reads with the setting
        `operator` sees what is going on. PostgreSQL answers until the projection has the copy.

        Args:
            board: the board's key.
            season: a label; None: `all` where the board has it, else the current season.
            actor: who does it, for the audit.
            reason: why, for the audit.
            every: every season that holds then and isn't final, all at one and the same instant.
                Those that are frozen already stay as they are shown.
            at: when; a worker does it then, within a second. None: now, in this call.
            timeout_s: how long to wait for others who are at work on it, in seconds.

        Returns:
            The freeze. All that had committed by its `frozen_at` is shown, and nothing later: what
            was acknowledged before, and nothing that was sent after it. `public` names other
            seasons in which the same goes on before everybody's eyes. With `every` it is that of
            one of the seasons, and `together` names all of them.

        Raises:
            InvalidInput: `at` is naive or past; or a season is named, and `every` is true.
            BoardUnknown, SeasonUnknown: there is none.
            FreezePending: others are at work on it for longer; a worker goes on with it.
            Contended: another transaction holds the freeze. Nothing was changed.
        """
        freeze, due = yield from retried(
            lambda: freezing.begin(board, season, every=every, at=at, actor=actor, reason=reason)
        )
        for each in due:
            yield from freezing.take(each, timeout_s=timeout_s)
            while not (yield from freezing.log(each)):
                pass
        (found,) = yield from freezing.list_freezes(board, freeze=freeze)
        if due:
            yield from self._told(board, found.together or (found.season,))
        return found

    def reveal_season(
        self,
        board: str,
        season: str | None = None,
        *,
        actor: str,
        reason: str,
        every: bool = False,
    ) -> Steps[bool]:
        """Show the public a season again as it is, in one step; False where it wasn't frozen.

        A freeze that was to come is called off.

        Args:
            board: the board's key.
            season: a label; None: `all` where the board has it, else the current season.
            actor: who does it, for the audit.
            reason: why, for the audit.
            every: all seasons of the board that are frozen or to be, in one step.

        Raises:
            InvalidInput: a season is named, and `every` is true.
            BoardUnknown, SeasonUnknown: there is none.
            Contended: another transaction holds the freeze. Nothing was changed.
        """
        seasons: Sequence[str | None] = (season,)
        if every:
            known = yield from freezing.list_freezes(board, limit=_SEASONS_MAX)
            seasons = [freeze.season for freeze in known if freeze.revealed_at is None]
        revealed = yield from retried(
            lambda: freezing.reveal(board, season, every=every, actor=actor, reason=reason)
        )
        yield from self._told(board, seasons)
        return revealed

    def freezes(self, board: str | None = None, *, limit: int = LATEST) -> Steps[list[Freeze]]:
        """Which seasons are frozen, or were, latest first; of one board or of all."""
        return (yield from freezing.list_freezes(board, limit=limit))

    def _told(self, board: str, seasons: Sequence[str | None]) -> Steps[None]:
        self._known.forget(board)
        yield Pause(self._remembered_s + self._held_s)
        found, _ = yield from self._known.board(board)
        keys = GroupKeys(self._prefix, found.group)
        rankings: set[int] = set()
        for label in seasons:
            season = yield from self._known.season(found, label)
            rankings.add(season.ranking)
        # A hint, which may be lost: who follows the board live looks again.
        with suppress(ProjectionUnavailable):
            generation, tick = yield from current(self._prefix, found.group)
            if generation is not None:
                told = f"{found.id} {tick}:0 {generation}"
                yield Commands([("PUBLISH", keys.hints, f"{told} {each}") for each in rankings])
