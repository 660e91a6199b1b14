"""Group commit for your own service: many callers, few transactions, an answer for each.

What waits at the same moment for one board becomes one transaction of up to 1,000 events. Nobody
is made to wait for company: while a batch commits, the next one gathers.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from truerank.command.submit import or_raise
from truerank.gather import Gather
from truerank.model import Receipt, ScoreEvent
from truerank.settings import Settings, load
from truerank.writing import Writer

_CLOSE_S_MAX = 5.0


class Gatherer:
    """Gathers the submits of one event loop. Open it with `async with`, once per process.

    Args:
        settings: with the address of PostgreSQL; None: from TRUERANK_* variables.
        waiting_events_max: how many events may wait per board; more are refused with `Busy`.
    """

    def __init__(
        self, settings: Settings | None = None, *, waiting_events_max: int = 10_000
    ) -> None:
        settings = settings or load()
        self._writer = Writer(settings)
        self._gather = Gather(
            self._writer.submit,
            waiting_events_max=waiting_events_max,
            wait_s_max=settings.database_timeout_ms / 1000,
        )

    async def submit_score(
        self,
        board: str,
        event: ScoreEvent,
        *,
        expected_season: str | None = None,
        expected_operator: str | None = None,
    ) -> Receipt:
        """Apply one event, in one transaction with whoever else waits; it is committed on return.

        Raises:
            EventConflict: `event_id` already names another command.
            EventRefused: the board's rules refuse the event; `reason` says which.
            BoardUnknown: no board has this key.
            InvalidInput: the event is malformed; nothing was sent.
            Busy: too much waits, or no answer came in time. Sending it again is safe.
            Contended: somebody outside holds a lock on this member. Nothing was written.
            DatabaseUnavailable: the database is away. Sending it again is safe.
        """
        (receipt,) = await self._gather.submit(board, [event], expected_season, expected_operator)
        return or_raise(board, receipt)

    async def submit_scores(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        *,
        expected_season: str | None = None,
        expected_operator: str | None = None,
    ) -> list[Receipt]:
        """Apply several events that stay together in one transaction; outcomes are values.

        Raises:
            InvalidInput, Busy, Contended, DatabaseUnavailable: as `submit_score`.
        """
        if not events:
            return []
        return await self._gather.submit(board, events, expected_season, expected_operator)

    async def __aenter__(self) -> Self:
        await self._writer.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Let what waits be committed, for at most five seconds; the rest gets `Busy`."""
        await self._gather.close(timeout_s=_CLOSE_S_MAX)
        await self._writer.close()
