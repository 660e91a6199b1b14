"""Scores in the transaction of a SQLAlchemy session or connection.

Works with the dialects `postgresql+psycopg` and `postgresql+asyncpg`. The statement runs where
`execute()` of the session runs text; a session with several engines needs the connection of the
right one: `submit_score(session.connection(bind_arguments=...), ...)`.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.model import Receipt, ScoreEvent

_NAMES = [f"p{number}" for number in range(SUBMIT.count("%s"))]
# In parentheses, for text() doesn't see where a name ends that a :: follows.
_SUBMIT = text(SUBMIT.replace("%s", "(:{})").format(*_NAMES))


def submit_score(
    conn: Connection | Session | scoped_session[Any],
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
        sqlalchemy.exc.DBAPIError: of the database; `orig.sqlstate` is 40001 where the
            transaction must be run again.

    Source: `schema/functions/submit_scores.sql`.
    """
    (receipt,) = submit_scores(
        conn,
        board,
        [event],
        expected_season=expected_season,
        source=source,
        expected_operator=expected_operator,
    )
    return or_raise(board, receipt)


def submit_scores(
    conn: Connection | Session | scoped_session[Any],
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
        sqlalchemy.exc.DBAPIError: as `submit_score`.

    Source: `schema/functions/submit_scores.sql`.
    """
    if not events:
        return []
    result = conn.execute(
        _SUBMIT, _parameters(board, events, expected_season, source, expected_operator)
    )
    return receipts(events, result)


async def submit_score_async(
    conn: AsyncConnection | AsyncSession | async_scoped_session[Any],
    board: str,
    event: ScoreEvent,
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> Receipt:
    """`submit_score` for asyncio."""
    (receipt,) = await submit_scores_async(
        conn,
        board,
        [event],
        expected_season=expected_season,
        source=source,
        expected_operator=expected_operator,
    )
    return or_raise(board, receipt)


async def submit_scores_async(
    conn: AsyncConnection | AsyncSession | async_scoped_session[Any],
    board: str,
    events: Sequence[ScoreEvent],
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> list[Receipt]:
    """`submit_scores` for asyncio."""
    if not events:
        return []
    result = await conn.execute(
        _SUBMIT, _parameters(board, events, expected_season, source, expected_operator)
    )
    return receipts(events, result)


def _parameters(
    board: str,
    events: Sequence[ScoreEvent],
    expected_season: str | None,
    source: str | None,
    expected_operator: str | None,
) -> dict[str, Any]:
    return dict(
        zip(
            _NAMES,
            submit_parameters(board, events, expected_season, source, expected_operator),
            strict=True,
        )
    )
