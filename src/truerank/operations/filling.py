"""Seasons of another period on a board that has a past."""

from truerank.command import filling
from truerank.command.filling import Filled
from truerank.model import SeasonsFilling
from truerank.operations.base import Base, retried
from truerank.steps import Steps

SLICE_MEMBERS = 500


class Filling(Base):
    """Periods that are added to boards."""

    def add_seasons(self, board: str, period: str, *, actor: str, reason: str) -> Steps[bool]:
        """Let a board keep seasons of one more period; True where it didn't.

        Events count in the new seasons from now on. Those of the past are computed by workers, or
        by `fill_seasons`; until all of them are there, readers find none.

        Args:
            board: the board's key.
            period: `all`, `day`, `week`, `month` or `year`.
            actor: who does it, for the audit.
            reason: why, for the audit.

        Raises:
            InvalidInput: there is no such period, or events of the board may be forgotten.
            BoardUnknown: no board has this key.
        """
        added = yield from retried(
            lambda: filling.add_period(board, period, actor=actor, reason=reason)
        )
        self._known.forget(board)
        return added

    def fill_seasons(self, board: str, *, members_max: int = SLICE_MEMBERS) -> Steps[Filled]:
        """Compute added seasons for the next members; again and again until `done`.

        Safe to repeat, and beside workers.
        """
        filled = yield from retried(lambda: filling.fill_slice(board, members_max))
        if filled.done:
            self._known.forget(board)
        return filled

    def seasons_filling(self, board: str, *, count: bool = False) -> Steps[SeasonsFilling]:
        """How far the added seasons of a board are computed, and who is waited for.

        Args:
            board: the board's key.
            count: have the members counted where nobody has yet; that reads the board's history
                once, and is remembered.

        Raises:
            BoardUnknown: no board has this key.
        """
        return (yield from filling.seasons_filling(board, count=count))
