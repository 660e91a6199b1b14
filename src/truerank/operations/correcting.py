"""What a score is made of, and what to do where that is wrong."""

from collections.abc import Sequence
from datetime import datetime

from truerank.command import correct
from truerank.command.submit import or_raise
from truerank.errors import SeasonFrozen
from truerank.model import Receipt, Standing
from truerank.operations.base import Base, retried
from truerank.read.explain import ExplainedEvent, explain
from truerank.read.standing import read_standing
from truerank.steps import Steps


class Correcting(Base):
    """Corrections, and what they are based on."""

    def void_events(
        self, board: str, event_ids: Sequence[str], *, actor: str, reason: str
    ) -> Steps[list[Receipt]]:
        """Take events out of every standing, as if they had never happened; safe to repeat.

        The events stay, and so does who took them out and why. One receipt per event.
        """
        return (
            yield from retried(
                lambda: correct.void_events(board, event_ids, actor=actor, reason=reason)
            )
        )

    def void_where(
        self,
        board: str,
        *,
        actor: str,
        reason: str,
        member: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 1000,
    ) -> Steps[int]:
        """Void up to `limit` events of a member, a source or a span of time; how many it was.

        Call it again until it answers 0: each call is a transaction of its own.

        Raises:
            EventRefused: some can't be voided; `reason` says why. The others are void.
        """
        ids = yield from correct.events_where(
            board, member=member, source=source, since=since, until=until, limit=limit
        )
        receipts_ = yield from self.void_events(board, ids, actor=actor, reason=reason)
        for receipt in receipts_:
            or_raise(board, receipt)
        return len(receipts_)

    def amend_event(
        self,
        board: str,
        event_id: str,
        value: int | str,
        *,
        correction_id: str,
        actor: str,
        reason: str,
        ties: Sequence[int] = (),
    ) -> Steps[Receipt]:
        """Let an event count with another value, at the time and position it always had.

        Raises:
            EventConflict: `correction_id` already names another correction or event.
            EventRefused: no such event, a closed season, or a value out of range.
        """
        receipt = yield from retried(
            lambda: correct.amend_event(
                board,
                event_id,
                value,
                correction_id=correction_id,
                actor=actor,
                reason=reason,
                ties=ties,
            )
        )
        return or_raise(board, receipt)

    def explain(
        self, board: str, member: str, season: str | None = None
    ) -> Steps[list[ExplainedEvent]]:
        """The events that a member's score is made of, in the order in which they count.

        Of hidden members too: this is not a public view. Of a member that was reset or deleted
        they are `ended`, of an id that was merged `merged`: they count for the other.

        Raises:
            SeasonFrozen: its events tell what goes on behind a freeze, and that is for operators.
        """
        found, _ = yield from self._known.board(board)
        named = yield from self._known.shown(found, season)
        if named.frozen_at is not None:
            raise SeasonFrozen(f"season {named.label!r} of {board!r} is frozen", field="season")
        return (yield from explain(found, named, member))

    def standing(
        self, board: str, member: str, season: str | None = None
    ) -> Steps[Standing | None]:
        """What PostgreSQL holds for a member: score, version, reached-at, metadata; or None.

        Always from PostgreSQL, and for hidden members too: this is not a public view. Of a season
        that is frozen, all but operators get what it was, with `frozen_at`.
        """
        found, _ = yield from self._known.board(board)
        named = yield from self._known.shown(found, season)
        return (yield from read_standing(found, named, member))
