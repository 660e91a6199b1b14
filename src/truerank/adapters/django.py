"""Scores in the transaction of a Django database connection, the one that `atomic()` opens."""

from collections.abc import Sequence

from django.db import (  # type: ignore[import-untyped]  # Django ships no types
    DEFAULT_DB_ALIAS,
    connections,
    transaction,
)

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.model import Receipt, ScoreEvent


def submit_score(
    board: str,
    event: ScoreEvent,
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> Receipt:
    """Apply one score event in the transaction of a database; see `truerank.submit_score`.

    Args:
        board: the board's key.
        event: `value` is in the board's unit; `occurred_at` is aware.
        expected_season: refuse the event unless it falls into the season of this label.
        source: where it came from, kept with the event; a correction can name it.
        expected_operator: refuse the event unless the board has this operator.
        using: the database's alias in `DATABASES`.

    Raises:
        EventConflict, EventRefused, BoardUnknown: the event had no effect, and the transaction
            is still usable.
        InvalidInput: the event is malformed; nothing was sent.
        TransactionManagementError: no transaction is open; the score would commit by itself.
        django.db.DatabaseError: of the database; `__cause__.sqlstate` is 40001 where the
            transaction must be run again.

    Source: `schema/functions/submit_scores.sql`.
    """
    (receipt,) = submit_scores(
        board,
        [event],
        expected_season=expected_season,
        source=source,
        expected_operator=expected_operator,
        using=using,
    )
    return or_raise(board, receipt)


def submit_scores(
    board: str,
    events: Sequence[ScoreEvent],
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> list[Receipt]:
    """Apply several events in the transaction of a database; see `truerank.submit_scores`.

    Raises:
        InvalidInput: an event is malformed; nothing was sent.
        TransactionManagementError, django.db.DatabaseError: as `submit_score`.

    Source: `schema/functions/submit_scores.sql`.
    """
    connection = connections[using]
    # Nobody sees which connection this is, so a forgotten atomic() would go unnoticed.
    if connection.get_autocommit():
        raise transaction.TransactionManagementError(
            "submit scores inside transaction.atomic(), so that they commit with your rows"
        )
    if not events:
        return []
    parameters = submit_parameters(board, events, expected_season, source, expected_operator)
    with connection.cursor() as cursor:
        cursor.execute(SUBMIT, parameters)
        return receipts(events, cursor.fetchall())
