"""Erasing people, and how far that has come."""

from dataclasses import replace

from truerank.command import erase
from truerank.errors import InvalidInput
from truerank.model import Erasure
from truerank.operations.base import Base, retried
from truerank.paging import LATEST
from truerank.steps import Pause, Steps

_WAIT_S = 2.0
_COMPLETE_S = 60.0
_PAUSE_S = 0.1


class Erasing(Base):
    """Erasures: out of sight when the call returns, complete when nothing names the person."""

    def erase_member(
        self, member: str, *, actor: str, reason: str, timeout_s: float = _WAIT_S
    ) -> Steps[Erasure]:
        """Remove a person from everything, with all ids that were merged into it.

        Nobody is shown the person once this returns, as with `delete_member`; what PostgreSQL and
        Redis still hold is removed by the worker within some heartbeats, see `wait_erased`. Other
        people's scores stay as they are. An id that is used again begins at zero.

        Args:
            member: its id, or one that was merged into it.
            actor: who does it, for the audit.
            reason: why; it is kept, so it should not name the person.
            timeout_s: how long to wait for the projection, in seconds.
        """
        erasure, token, groups = yield from retried(
            lambda: erase.erase(member, actor=actor, reason=reason)
        )
        shown = yield from self._in_force(groups, token, timeout_s, doubted=None)
        return replace((yield from self._erasure(erasure)), token=token, pending=not shown)

    def erasures(self, erasure: str | None = None, *, limit: int = LATEST) -> Steps[list[Erasure]]:
        """Erasures, latest first; or the one of this id, if there is one.

        Raises:
            InvalidInput: the id is none, or `limit` is outside 1 to 1000.
        """
        return (yield from erase.list_erasures(erasure, limit=limit))

    def wait_erased(self, erasure: str, *, timeout_s: float = _COMPLETE_S) -> Steps[Erasure]:
        """Wait until an erasure is complete; how far it has come after `timeout_s` seconds.

        It takes some heartbeats of the workers, and waits for transactions that were open when it
        began, and for copies in Redis that are behind.

        Raises:
            InvalidInput: there is no such erasure.
        """
        until = (yield Pause(0.0)) + timeout_s
        while True:
            found = yield from self._erasure(erasure)
            if found.complete or (yield Pause(_PAUSE_S)) > until:
                return found

    def _erasure(self, erasure: str) -> Steps[Erasure]:
        found = yield from erase.list_erasures(erasure)
        if not found:
            raise InvalidInput("there is no such erasure", field="erasure")
        return found[0]
