"""Freezing seasons for the public, and revealing them."""

from contextlib import suppress
from datetime import datetime

from truerank.command import freezing
from truerank.errors import ProjectionUnavailable
from truerank.model import Freeze
from truerank.operations.base import Base, retried
from truerank.projection.keys import GroupKeys
from truerank.read.hints import current
from truerank.steps import Commands, Pause, Steps

_WAIT_S = 10.0


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
            at: when; a worker does it then, within a second. None: now, in this call.
            timeout_s: how long to wait for others who are at work on it, in seconds.

        Returns:
            The freeze. All that had committed by its `frozen_at` is shown, and nothing later: what
            was acknowledged before, and nothing that was sent after it.

        Raises:
            InvalidInput: `at` is naive or past.
            BoardUnknown, SeasonUnknown: there is none.
            FreezePending: others are at work on it for longer; a worker goes on with it.
            Contended: another transaction holds the freeze. Nothing was changed.
        """
        freeze, due = yield from retried(
            lambda: freezing.begin(board, season, at=at, actor=actor, reason=reason)
        )
        if due:
            yield from freezing.take(freeze, timeout_s=timeout_s)
            while not (yield from freezing.log(freeze)):
                pass
            yield from self._told(board, season)
        (found,) = yield from freezing.list_freezes(board, freeze=freeze)
        return found

    def reveal_season(
        self, board: str, season: str | None = None, *, actor: str, reason: str
    ) -> Steps[bool]:
        """Show the public a season again as it is, in one step; False where it wasn't frozen.

        A freeze that was to come is called off.

        Raises:
            BoardUnknown, SeasonUnknown: there is none.
            Contended: another transaction holds the freeze. Nothing was changed.
        """
        revealed = yield from retried(
            lambda: freezing.reveal(board, season, actor=actor, reason=reason)
        )
        yield from self._told(board, season)
        return revealed

    def freezes(self, board: str | None = None, *, limit: int = 100) -> Steps[list[Freeze]]:
        """Which seasons are frozen, or were, latest first; of one board or of all."""
        return (yield from freezing.list_freezes(board, limit=limit))

    def _told(self, board: str, season: str | None) -> Steps[None]:
        self._known.forget(board)
        yield Pause(self._remembered_s + self._held_s)
        found, _ = yield from self._known.board(board)
        ranking = (yield from self._known.season(found, season)).ranking
        keys = GroupKeys(self._prefix, found.group)
        # A hint, which may be lost: who follows the board live looks again.
        with suppress(ProjectionUnavailable):
            generation, tick = yield from current(self._prefix, found.group)
            if generation is not None:
                text = f"{found.id} {tick}:0 {generation} {ranking}"
                yield Commands([("PUBLISH", keys.hints, text)])
