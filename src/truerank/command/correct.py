"""Correct what was recorded: void events, or amend their values, with who and why.

Events are never changed or deleted. A correction is a row that names its target; standings,
reached-at and seasons follow from the events that remain. A sealed season still takes corrections;
a final one is revised, see `truerank.command.closing`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from truerank.command.attach import who
from truerank.command.submit import check_text, receipts_of, to_number
from truerank.errors import InvalidInput
from truerank.model import Receipt
from truerank.paging import check_whole
from truerank.steps import Query, Steps

_CORRECT = """
    SELECT ord, outcome, code, season, score::text, version, token::text,
           (SELECT truerank.incarnation())
    FROM truerank.correct_events(
        %s, %s::text[], %s::text[], %s::numeric[], %s::bigint[], %s, %s, '{final}')"""
_EVENTS_MAX = 100_000  # in one call
_WHERE = "SELECT * FROM truerank.events_where(%s, %s, %s, %s, %s, %s::integer)"


def void_events(
    board: str, event_ids: Sequence[str], *, actor: str, reason: str
) -> Steps[list[Receipt]]:
    """Take events out of every standing, as if they had never happened; safe to repeat.

    Args:
        board: the board's key.
        event_ids: as they were submitted.
        actor: who does it, for the audit.
        reason: why, for the audit.

    Returns:
        One receipt per event, with the standings that remain.

    Source: `schema/functions/correct_events.sql`.
    """
    _check(board, event_ids, actor, reason)
    if not event_ids:
        return []
    rows = yield Query(_CORRECT, (board, list(event_ids), None, None, None, actor, reason))
    return receipts_of(event_ids, rows)


def amend_event(
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

    Args:
        board: the board's key.
        event_id: as it was submitted.
        value: in the board's unit.
        correction_id: names this amendment for ever, like an event id.
        actor: who does it, for the audit.
        reason: why, for the audit.
        ties: the new tie-breaks, on boards that have them.

    Source: `schema/functions/correct_events.sql`.
    """
    _check(board, [event_id, correction_id], actor, reason)
    parameters = (
        board, [event_id], [correction_id], [to_number(value)], list(ties) or None, actor, reason,
    )  # fmt: skip
    (receipt,) = receipts_of([event_id], (yield Query(_CORRECT, parameters)))
    return receipt


def events_where(
    board: str,
    *,
    member: str | None = None,
    source: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 1000,
) -> Steps[list[str]]:
    """Ids of up to `limit` events that aren't void: of a member, a source, a span of time.

    Raises:
        InvalidInput: nothing is named, or `limit` is outside 0 to 100,000.

    Source: `schema/functions/events_where.sql`.
    """
    check_whole("limit", limit, _EVENTS_MAX)
    if member is None and source is None and since is None and until is None:
        raise InvalidInput("name a member, a source or a span of time", field="member")
    rows: list[tuple[Any, ...]] = yield Query(_WHERE, (board, member, source, since, until, limit))
    return [event_id for (event_id,) in rows]


def _check(board: str, event_ids: Sequence[str], actor: str, reason: str) -> None:
    check_text(board, "board")
    for event_id in event_ids:
        check_text(event_id, "event_id")
    who(actor, reason)
