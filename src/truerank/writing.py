"""The connections that scores are written on: they give up soon where somebody holds a lock."""

from collections.abc import Sequence

import psycopg
import psycopg_pool

from truerank.aio import submit_scores
from truerank.connections import aborrowed, connection_kwargs, connection_wait_s, translate
from truerank.model import Receipt, ScoreEvent
from truerank.settings import Settings

_LOCK_TIMEOUT_MS = 250


class Writer:
    """A pool whose every statement is one transaction with a short lock timeout."""

    def __init__(self, settings: Settings) -> None:
        assert settings.database_url is not None, "the client that was opened before checks it"
        kwargs = connection_kwargs(settings)
        kwargs["options"] += f" -c lock_timeout={_LOCK_TIMEOUT_MS}"
        kwargs["application_name"] = "truerank writer"
        self._pool = psycopg_pool.AsyncConnectionPool(
            settings.database_url,
            min_size=0,
            max_size=settings.pool_max,
            open=False,
            timeout=connection_wait_s(settings),
            kwargs=kwargs,
        )

    async def open(self) -> None:
        """Open the pool; connections are made as they are needed."""
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def submit(
        self, board: str, events: Sequence[ScoreEvent], expected_season: str | None
    ) -> list[Receipt]:
        """Apply events of one board in one transaction; outcomes are values.

        Raises:
            Contended: another transaction held a lock for longer than `_LOCK_TIMEOUT_MS`.
            DatabaseUnavailable: no connection, or a server that takes no writes.
        """
        try:
            async with aborrowed(self._pool) as conn:
                try:
                    return await submit_scores(conn, board, events, expected_season=expected_season)
                except psycopg.errors.ReadOnlySqlTransaction:
                    # A primary that was demoted keeps its connections: the next one is made anew.
                    await conn.close()
                    raise
        except psycopg.Error as exc:
            raise translate(exc) from exc
