"""The connections that scores are written on: they give up soon where somebody holds a lock."""

from collections.abc import Sequence

from truerank.command.submit import SUBMIT, receipts, submit_parameters
from truerank.connections import AsyncDatabase
from truerank.model import Receipt, ScoreEvent
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_LOCK_TIMEOUT_MS = 250


class Writer:
    """A pool whose every statement is one transaction with a short lock timeout.

    Args:
        settings: with the address of PostgreSQL.
        meter: told how events end; None: nobody is.
    """

    def __init__(self, settings: Settings, meter: Meter | None = None) -> None:
        self._meter = meter or Meter()
        assert settings.database_url is not None, "the client that was opened before checks it"
        self._database = AsyncDatabase(
            settings.database_url,
            settings,
            application="truerank writer",
            lock_ms=_LOCK_TIMEOUT_MS,
        )

    async def open(self) -> None:
        """Open the pool; connections are made as they are needed."""
        await self._database.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._database.close()

    async def submit(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        expected_season: str | None,
        expected_operator: str | None = None,
    ) -> list[Receipt]:
        """Apply events of one board in one transaction; outcomes are values.

        Raises:
            Contended: another transaction held a lock for longer than `_LOCK_TIMEOUT_MS`.
            DatabaseUnavailable: no connection, or a server that takes no writes.
        """
        parameters = submit_parameters(board, events, expected_season, None, expected_operator)
        with self._meter.watching("command"):
            rows = await self._database.query(SUBMIT, parameters)
        answered = receipts(events, rows)
        self._meter.commands_answered(answered)
        return answered
