"""Record scores: one SQL call on the caller's connection, in the caller's transaction.

The event, the score and the outbox row commit together with whatever else the caller
writes, or not at all. Nothing here opens a connection, commits, or knows of Valkey.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from truerank.command.refusals import MEANINGS
from truerank.crashpoints import crashpoint
from truerank.errors import (
    BoardUnknown,
    EventConflict,
    EventRefused,
    InvalidInput,
    TruerankError,
)
from truerank.model import Operator, Outcome, Receipt, ScoreEvent, StandingNow, Token

SUBMIT = """
    SELECT ord, outcome, code, season, score::text, version, token::text,
           (SELECT truerank.incarnation())
    FROM truerank.submit_scores(%s, %s::text[], %s::text[], %s::numeric[], %s::timestamptz[],
                                %s::bigint[], %s::text[]::jsonb[], %s, %s, %s)"""


def submit_score(
    conn: psycopg.Connection[Any],
    board: str,
    event: ScoreEvent,
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> Receipt:
    """Apply one score event to every season it belongs to.

    Safe to repeat: the same event under the same `event_id` adds nothing and answers
    `Outcome.DUPLICATE` with the standing as it is now. The caller commits.

    Args:
        conn: the score belongs to the transaction this connection is in.
        board: the board's key.
        event: `value` is in the board's unit; `occurred_at` is aware.
        expected_season: refuse the event unless it falls into the season of this label.
        source: where it came from, kept with the event; a correction can name it.
        expected_operator: refuse the event unless the board has this operator: sum, best or latest.

    Returns:
        The absolute score and version per season, read under the row lock, and the token with
        which a reader asks for an answer at least as fresh as this write.

    Raises:
        EventConflict: `event_id` already names another command. Nothing was written, and the
            transaction is still usable.
        EventRefused: the board's rules refuse the event; `reason` says which. Likewise.
        BoardUnknown: no board has this key. Likewise.
        InvalidInput: the event is malformed; nothing was sent.

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
    conn: psycopg.Connection[Any],
    board: str,
    events: Sequence[ScoreEvent],
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> list[Receipt]:
    """Apply several events to one board in one call; outcomes are values, in the given order.

    Args:
        conn: the scores belong to the transaction this connection is in.
        board: the board's key.
        events: of one board; order counts where several are of one member.
        expected_season: refuse events that don't fall into the season of this label.
        source: where they came from, kept with the events; a correction can name it.
        expected_operator: refuse all unless the board has this operator: sum, best or latest.

    Returns:
        One receipt per event. A conflict or refusal of one leaves the others applied.

    Raises:
        InvalidInput: an event is malformed; nothing was sent.

    Source: `schema/functions/submit_scores.sql`.
    """
    if not events:
        return []
    parameters = submit_parameters(board, events, expected_season, source, expected_operator)
    # The connection may be set up for rows of another shape, or for cursors of another kind.
    with psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
        rows = cursor.execute(SUBMIT, parameters, binary=True).fetchall()
    crashpoint("submit_executed")
    return receipts(events, rows)


def submit_parameters(
    board: str,
    events: Sequence[ScoreEvent],
    expected_season: str | None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> tuple[Any, ...]:
    """The parameters of `SUBMIT`, for any driver: text, integers, decimals, times, lists of them.

    Raises:
        InvalidInput: a field can't be stored as it is: NUL, half a surrogate pair, a naive time,
            a value that isn't a number, tie-breaks of unequal number, metadata that isn't JSON,
            an operator that no board has.
    """
    check_text(board, "board")
    for name, text in (("expected_season", expected_season), ("source", source)):
        if text is not None:
            check_text(text, name)
    if expected_operator is not None and expected_operator not in set(Operator):
        words = ", ".join(Operator)
        raise InvalidInput(f"expected_operator is one of {words}", field="expected_operator")
    for event in events:
        _check_event(event)
    ties = [tie for event in events for tie in event.ties]
    if len({len(event.ties) for event in events}) > 1:
        raise InvalidInput("events of one board have the same number of ties", field="ties")
    metadata = [None if e.metadata is None else json_text(e.metadata, "metadata") for e in events]
    return (
        board,
        [event.event_id for event in events],
        [event.member for event in events],
        _numbers(events),
        [event.occurred_at for event in events]
        if any(event.occurred_at for event in events)
        else None,
        ties or None,
        metadata if any(metadata) else None,
        expected_season,
        source,
        None if expected_operator is None else str(expected_operator),
    )


def receipts(events: Sequence[ScoreEvent], rows: Iterable[Sequence[Any]]) -> list[Receipt]:
    """Turn the rows of `SUBMIT` into one receipt per event."""
    return receipts_of([event.event_id for event in events], rows)


def receipts_of(event_ids: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Receipt]:
    """Turn rows of `truerank.receipt` and the incarnation into one receipt per event id."""
    found: list[tuple[Any, list[StandingNow]] | None] = [None] * len(event_ids)
    for row in rows:
        ord_, _, _, season, score, version, _, _ = row
        entry = found[ord_ - 1]
        if entry is None:
            entry = found[ord_ - 1] = (row, [])
        if season is not None:
            entry[1].append(StandingNow(season=season, score=score, version=version))
    result = []
    for event_id, entry in zip(event_ids, found, strict=True):
        assert entry is not None, "the function answers for every event"
        (_, outcome, code, _, _, _, xid, incarnation), standings = entry
        result.append(
            Receipt(
                event_id=event_id,
                outcome=Outcome(outcome),
                code=code,
                standings=tuple(standings),
                token=Token(f"{xid}.{incarnation}") if xid is not None and standings else None,
            )
        )
    return result


def or_raise(board: str, receipt: Receipt) -> Receipt:
    """The receipt itself where the command took effect, or had before; else its error."""
    error = failure(board, receipt)
    if error is not None:
        raise error
    return receipt


def failure(board: str, receipt: Receipt) -> TruerankError | None:
    """The error that a receipt stands for, or None."""
    if receipt.outcome is Outcome.CONFLICT:
        return EventConflict(
            f"event id {receipt.event_id!r} was used before, for another command", field="event_id"
        )
    if receipt.outcome is Outcome.REFUSED:
        if receipt.code == BoardUnknown.code:
            return BoardUnknown(f"there is no board {board!r}", field="board")
        return EventRefused(
            f"board {board!r} refuses event {receipt.event_id!r}: {_meaning(receipt.code)}",
            code=receipt.code,
            field=_FIELDS.get((receipt.code or "").partition("_")[0]),
        )
    return None


def _meaning(code: str | None) -> str:
    meaning = MEANINGS.get(code or "")
    return f"{code}, {meaning}" if meaning else str(code)


def summary(receipts: Iterable[Receipt]) -> Counter[str]:
    """How many receipts had each outcome; refusals are counted by their code."""
    return Counter(receipt.code or receipt.outcome.value for receipt in receipts)


def check_text(text: str, field: str) -> None:
    """Refuse what PostgreSQL can't store as text.

    Raises:
        InvalidInput: not a str, a NUL, or half a surrogate pair.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{field} must be text, not {type(text).__name__}", field=field)
    if "\0" in text:
        raise InvalidInput(f"{field} contains a NUL character", field=field)
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput(f"{field} contains half a surrogate pair", field=field) from exc


def check_member(member: str, field: str = "member") -> None:
    """Refuse what no member can be called.

    Raises:
        InvalidInput: no text that PostgreSQL can store, or not of 1 to 200 characters.
    """
    check_text(member, field)
    if not 1 <= len(member) <= _MEMBER_CHARS_MAX:
        raise InvalidInput("a member's id has 1 to 200 characters", field=field)


_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_NUMBER_CHARS_MAX = 100
_EXPONENT_MAX = 40
_MEMBER_CHARS_MAX = 200
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_FIELDS = {
    "event": "event_id",
    "member": "member",
    "value": "value",
    "total": "value",
    "occurred": "occurred_at",
    "tie": "ties",
    "metadata": "metadata",
    "season": "occurred_at",
    "operator": "expected_operator",
}


def _check_event(event: ScoreEvent) -> None:
    check_text(event.event_id, "event_id")
    check_text(event.member, "member")
    at = event.occurred_at
    if at is not None and (not isinstance(at, datetime) or at.utcoffset() is None):
        raise InvalidInput("occurred_at needs an offset from UTC", field="occurred_at")
    for tie in event.ties:
        if type(tie) is not int or not -(2**63) <= tie < 2**63:
            raise InvalidInput("a tie-break is a 64-bit integer", field="ties")


def json_text(value: object, field: str) -> str:
    """The JSON text of a value that PostgreSQL can store.

    Raises:
        InvalidInput: it can't be written as JSON, or contains a NUL or half a surrogate pair.
    """
    # Here, for an error of PostgreSQL would end the caller's transaction.
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"{field} can't be written as JSON: {exc}", field=field) from exc
    check_text(text, field)
    if _ESCAPED_NUL.search(text):
        raise InvalidInput(f"{field} contains a NUL character", field=field)
    return text


def _numbers(events: Sequence[ScoreEvent]) -> list[int] | list[Decimal]:
    values = [event.value for event in events]
    if all(type(value) is int and -(2**63) <= value < 2**63 for value in values):
        return values  # type: ignore[return-value]  # checked by the line above
    return [to_number(value) for value in values]


def to_number(value: object) -> Decimal:
    """The exact number that a caller wrote.

    Raises:
        InvalidInput: it is none, or beyond any range.
    """
    # Floats are refused: 0.1 is not what a caller who wrote 0.1 stored. So is text that only
    # Python takes for a number: " 1_000 ", or digits of other scripts.
    if isinstance(value, str):
        if len(value) > _NUMBER_CHARS_MAX or not _NUMBER.fullmatch(value):
            raise InvalidInput(f"value {value[:50]!r} is not a number", field="value")
    elif type(value) is not int and not isinstance(value, Decimal):
        raise InvalidInput(f"a value is no {type(value).__name__}: it is exact", field="value")
    number = Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > _EXPONENT_MAX:
        raise InvalidInput("value is beyond the range of any board", field="value")
    return number
