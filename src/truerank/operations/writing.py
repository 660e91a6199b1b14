"""Score commands, in transactions of their own."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.crashpoints import crashpoint
from truerank.model import Receipt, ScoreEvent
from truerank.operations.base import Base, query, retried
from truerank.steps import Steps


class Writing(Base):
    """Score commands."""

    def submit_score(
        self,
        board: str,
        *,
        event_id: str,
        member: str,
        value: int | str,
        occurred_at: datetime | None = None,
        ties: Sequence[int] = (),
        metadata: Any = None,
        expected_season: str | None = None,
        source: str | None = None,
        expected_operator: str | None = None,
    ) -> Steps[Receipt]:
        """Apply one score event in a transaction of its own; safe to repeat.

        To commit a score together with your own rows, call `truerank.submit_score` with your
        connection instead.

        Raises:
            EventConflict: `event_id` already names another command.
            EventRefused: the board's rules refuse the event; `reason` says which.
            BoardUnknown: no board has this key.
        """
        event = ScoreEvent(
            event_id=event_id,
            member=member,
            value=value,
            occurred_at=occurred_at,
            ties=tuple(ties),
            metadata=metadata,
        )
        (receipt,) = yield from self.submit_scores(
            board,
            [event],
            expected_season=expected_season,
            source=source,
            expected_operator=expected_operator,
        )
        return or_raise(board, receipt)

    def submit_scores(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        *,
        expected_season: str | None = None,
        source: str | None = None,
        expected_operator: str | None = None,
    ) -> Steps[list[Receipt]]:
        """Apply several events to one board in one transaction; outcomes are values.

        `source` is kept with the events, and `void_where` can name it.

        Raises:
            InvalidInput: an event is malformed; nothing was sent.
            Contended: other transactions were in the way several times; nothing was written.
        """
        if not events:
            return []
        parameters = submit_parameters(board, events, expected_season, source, expected_operator)
        crashpoint("before_submit")
        with self._meter.watching("command"):
            rows = yield from retried(lambda: query(SUBMIT, parameters))
        crashpoint("after_submit")
        answered = receipts(events, rows)
        self._meter.commands_answered(answered)
        return answered
