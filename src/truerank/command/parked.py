"""What boards did not take from attached tables: list it, mend it, try it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from truerank.command.attach import patiently, who
from truerank.command.submit import check_text, to_number
from truerank.errors import InvalidInput
from truerank.paging import check_slice, check_whole
from truerank.steps import Query, Steps

_PARKED = "SELECT * FROM truerank.parked_rows(%s::integer, %s::bigint, %s::integer, %s)"
_RETRY = "SELECT truerank.retry_parked(%s, %s, %s::numeric, %s, %s, %s)"
_DISMISS = "SELECT truerank.dismiss_parked(%s, %s, %s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A row that a board did not take."""

    id: int
    attachment: int
    board: str
    source: str
    action: str  # submit, correct or void
    event_id: str | None
    member: str | None
    value: str | None  # in the board's unit
    occurred_at: str | None  # RFC 3339, UTC; or infinity
    ties: tuple[int, ...]
    code: str
    message: str
    parked_at: datetime
    tries: int
    tried_at: datetime
    done: str | None  # taken, superseded or dismissed
    done_at: datetime | None


def list_parked(
    attachment: int | None = None, *, after: int = 0, limit: int = 1000, done: bool = False
) -> Steps[list[Parked]]:
    """What boards did not take, the oldest first; with `done` also what is settled.

    Source: `schema/functions/parked_rows.sql`.
    """
    check_slice(limit)
    check_whole("after", after)
    rows: list[tuple[Any, ...]] = yield Query(_PARKED, (attachment, after, limit, done))
    return [_parked(row) for row in rows]


def retry_parked(
    parked: int,
    *,
    actor: str,
    reason: str,
    member: str | None = None,
    value: int | str | None = None,
    occurred_at: datetime | None = None,
) -> Steps[str]:
    """Try a parked row again, mended where `member`, `value` or `occurred_at` are given.

    Returns:
        `taken`; the code for which it stays parked; or what had become of it before.

    Raises:
        InvalidInput: there is no such row (`parked_unknown`), or a mended field is malformed.

    Source: `schema/functions/retry_parked.sql`.
    """
    if member is not None:
        check_text(member, "member")
    if occurred_at is not None and occurred_at.utcoffset() is None:
        raise InvalidInput("occurred_at needs an offset from UTC", field="occurred_at")
    number = None if value is None else to_number(value)
    return (
        yield from _settled(
            _RETRY, (parked, member, number, occurred_at, *who(actor, reason)), parked
        )
    )


def dismiss_parked(parked: int, *, actor: str, reason: str) -> Steps[str]:
    """Close a parked row without taking it in.

    Returns:
        `dismissed`, or what had become of it before.

    Raises:
        InvalidInput: there is no such row (`parked_unknown`).

    Source: `schema/functions/dismiss_parked.sql`.
    """
    return (yield from _settled(_DISMISS, (parked, *who(actor, reason)), parked))


def _settled(sql: str, parameters: Sequence[Any], parked: int) -> Steps[str]:
    check_whole("parked", parked)
    ((outcome,),) = yield from patiently(sql, parameters)
    if outcome == "parked_unknown":
        raise InvalidInput(f"there is no parked row {parked}", code=outcome, field="parked")
    return str(outcome)


def _parked(row: Sequence[Any]) -> Parked:
    (id_, attachment, board, source, action, event_id, member, value, occurred_at, ties, code,
     message, parked_at, tries, tried_at, done, done_at) = row  # fmt: skip
    return Parked(
        id=id_,
        attachment=attachment,
        board=board,
        source=source,
        action=action,
        event_id=event_id,
        member=member,
        value=value,
        occurred_at=occurred_at,
        ties=tuple(ties or ()),
        code=code,
        message=message,
        parked_at=parked_at,
        tries=tries,
        tried_at=tried_at,
        done=done,
        done_at=done_at,
    )
