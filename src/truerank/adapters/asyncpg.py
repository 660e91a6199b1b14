"""Scores in the transaction of an asyncpg connection.

asyncpg commits each statement by itself unless `async with conn.transaction():` is around it.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.model import Receipt, ScoreEvent

# asyncpg encodes the parameters by the types that PostgreSQL infers from the casts.
_SUBMIT = SUBMIT.replace("%s", "${}").format(*range(1, SUBMIT.count("%s") + 1))


class Connection(Protocol):
    """What is used of `asyncpg.Connection`, and of the proxy that a pool hands out."""

    def fetch(self, query: str, /, *args: Any) -> Awaitable[Sequence[Any]]:
        """Run a statement and return its rows."""
        ...

    def is_in_transaction(self) -> bool:
        """Only a connection has this: a pool would pick any connection, outside all blocks."""
        ...


async def submit_score(
    conn: Connection,
    board: str,
    event: ScoreEvent,
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> Receipt:
    """Apply one score event in the transaction that `conn` is in; see `truerank.submit_score`.

    Raises:
        EventConflict, EventRefused, BoardUnknown: the event had no effect, and the transaction
            is still usable.
        InvalidInput: the event is malformed; nothing was sent.
        asyncpg.PostgresError: of the database; `asyncpg.SerializationError` where the
            transaction must be run again.

    Source: `schema/functions/submit_scores.sql`.
    """
    (receipt,) = await submit_scores(
        conn,
        board,
        [event],
        expected_season=expected_season,
        source=source,
        expected_operator=expected_operator,
    )
    return or_raise(board, receipt)


async def submit_scores(
    conn: Connection,
    board: str,
    events: Sequence[ScoreEvent],
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> list[Receipt]:
    """Apply several events in the transaction of `conn`; see `truerank.submit_scores`.

    Raises:
        InvalidInput: an event is malformed; nothing was sent.
        asyncpg.PostgresError: as `submit_score`.

    Source: `schema/functions/submit_scores.sql`.
    """
    if not events:
        return []
    parameters = submit_parameters(board, events, expected_season, source, expected_operator)
    return receipts(events, await conn.fetch(_SUBMIT, *parameters))
