"""Make a table that holds durable facts the source of a board.

Triggers submit what statements change, in the transaction of whoever writes the table. Nothing
here runs when rows are written; this module sets up, and takes in what was there before. What a
board did not take: `truerank.command.parked`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from truerank.command.submit import check_text, to_number
from truerank.crashpoints import crashpoint
from truerank.errors import Contended, InvalidInput
from truerank.steps import Pause, Query, Steps

BACKFILL_ROWS = 1000
_TRIES_MAX = 20  # in a row, of a step that others are in the way of
_PAUSE_S_MAX = 0.2
_TEXT_CHARS_MAX = 1000

_ATTACH = """
    SELECT a.attachment, a.outcome, a.field, a.message, a.warnings
    FROM truerank.attach_table(%s, %s, %s, %s, %s, %s::numeric, %s, %s, %s::text[]::name[], %s, %s,
                               %s, %s, %s, %s, %s) AS a"""
_DETACH = "SELECT truerank.detach_table(%s::integer, %s, %s)"
_LIST = "SELECT * FROM truerank.attachments(%s::integer)"
_BACKFILL = """
    SELECT b.attached, b.rows, b.applied, b.duplicate, b.parked, b.done
    FROM truerank.backfill_attached(%s::integer, %s::integer, %s) AS b"""
_RESTART = "SELECT truerank.restart_backfill(%s::integer)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSpec:
    """Which table feeds which board, and how a row becomes an event.

    `table` is written as in SQL; columns and prefix are exact text. Either `value` names a column
    or `value_fixed` is what every row counts, in the board's unit. `zone` is the IANA zone of an
    `occurred_at` without one. `condition` is SQL on the columns of a row.
    """

    board: str
    table: str
    event_id: str
    member: str
    value: str | None = None
    value_fixed: int | str | None = None
    occurred_at: str | None = None
    zone: str | None = None
    ties: tuple[str, ...] = ()
    condition: str | None = None
    prefix: str = ""
    on_update: str = "correct"  # or ignore, refuse
    on_delete: str = "void"  # or ignore, refuse
    on_refusal: str = "park"  # or raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What became of `attach_table`."""

    id: int
    created: bool  # False: it was there, with the same settings
    warnings: tuple[str, ...]  # codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An attachment as it is; counts are rows."""

    id: int
    spec: AttachmentSpec
    source: str  # of its events
    state: str  # attached, incomplete, gone or detached
    uncovered: tuple[str, ...]  # partitions without triggers, or with disabled ones
    rows_estimate: int | None
    backfill: "Backfilled"
    backfill_done_at: datetime | None
    parked_open: int
    made_at: datetime
    detached_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """Rows that a backfill looked at, and what became of those that the condition let in."""

    rows: int = 0
    applied: int = 0
    duplicate: int = 0
    parked: int = 0

    def plus(self, other: "Backfilled") -> "Backfilled":
        """Both together."""
        return Backfilled(
            rows=self.rows + other.rows,
            applied=self.applied + other.applied,
            duplicate=self.duplicate + other.duplicate,
            parked=self.parked + other.parked,
        )


def attach_table(spec: AttachmentSpec, *, actor: str, reason: str) -> Steps[Attached]:
    """Put the triggers on a table; rows written from then on are events of the board.

    Safe to repeat: partitions that came meanwhile get their triggers.

    Raises:
        InvalidInput: the table can't feed the board so; `reason` of the error is the code, such
            as `zone_missing` or `column_type`, and `field` what to mend. Nothing was changed.
        Contended: writers of the table held their transactions open. Nothing was changed.

    Source: `schema/functions/attach_table.sql`.
    """
    for name in ("board", "table", "event_id", "member", "prefix"):
        check_text(getattr(spec, name), name)
    fixed = None if spec.value_fixed is None else to_number(spec.value_fixed)
    parameters = (
        spec.board, spec.table, spec.event_id, spec.member, spec.value, fixed, spec.occurred_at,
        spec.zone, list(spec.ties), spec.condition, spec.prefix, spec.on_update, spec.on_delete,
        spec.on_refusal, *who(actor, reason),
    )  # fmt: skip
    ((id_, outcome, field, message, warnings),) = yield from patiently(_ATTACH, parameters)
    if outcome not in {"attached", "existing"}:
        raise InvalidInput(message, code=outcome, field=field)
    return Attached(id=id_, created=outcome == "attached", warnings=tuple(warnings))


def detach_table(attachment: int, *, actor: str, reason: str) -> Steps[bool]:
    """End an attachment; events and parked rows stay. False where triggers of others are left.

    Such triggers do nothing any more; the table's owner may drop them.

    Raises:
        InvalidInput: there is no such attachment (`attachment_unknown`).
        Contended: writers of the table held their transactions open. Nothing was changed.

    Source: `schema/functions/detach_table.sql`.
    """
    ((outcome,),) = yield from patiently(_DETACH, (attachment, *who(actor, reason)))
    if outcome == "attachment_unknown":
        raise _unknown(attachment)
    return bool(outcome == "detached")


def list_attachments() -> Steps[list[Attachment]]:
    """All attachments, also those that have ended, in order of their numbers.

    Source: `schema/functions/attachments.sql`.
    """
    return [_attachment(row) for row in (yield Query(_LIST, (None,)))]


def find_attachment(attachment: int) -> Steps[Attachment]:
    """One attachment.

    Raises:
        InvalidInput: there is none of this number (`attachment_unknown`).
    """
    rows = yield Query(_LIST, (attachment,))
    if not rows:
        raise _unknown(attachment)
    return _attachment(rows[0])


def backfill(
    attachment: int,
    *,
    actor: str,
    rows_max: int = BACKFILL_ROWS,
    progress: Callable[[Backfilled], None] = lambda _part: None,
    restart: bool = False,
) -> Steps[Backfilled]:
    """Take in the rows that were in the table before it was attached, while new ones arrive.

    In many transactions, each with its progress; a run that was ended at any point is taken up
    where it was. Rows that a board refuses are parked.

    Args:
        attachment: its number.
        actor: for the audit.
        rows_max: of one transaction.
        progress: called after each with what it did.
        restart: from the first row; what is known adds nothing.

    Returns:
        What this run did.

    Raises:
        InvalidInput: there is no such attachment (`attachment_unknown`).
        Contended: others were in the way many times in a row; run it again.

    Source: `schema/functions/backfill_attached.sql`.
    """
    who(actor, "backfill")
    if restart:
        yield Query(_RESTART, (attachment,))
    total, rows_now, tries = Backfilled(), rows_max, 0
    while True:
        try:
            (row,) = yield Query(_BACKFILL, (attachment, rows_now, actor))
        except Contended:
            tries += 1
            if tries == _TRIES_MAX:
                raise
            # Fewer rows are locked for a shorter time; jitter parts those who meet again.
            rows_now = max(1, rows_now // 2)
            yield Pause(random.uniform(0, _PAUSE_S_MAX))  # noqa: S311 - no secret
            continue
        crashpoint("backfill_slice")
        attached, rows, applied, duplicate, parked, done = row
        if not attached:
            raise _unknown(attachment)
        part = Backfilled(rows=rows, applied=applied, duplicate=duplicate, parked=parked)
        total = total.plus(part)
        progress(part)
        if done:
            return total
        rows_now, tries = min(rows_max, rows_now * 2), 0


def patiently(sql: str, parameters: Sequence[Any]) -> Steps[list[tuple[Any, ...]]]:
    """Run one statement, again where others are in the way.

    Raises:
        Contended: they were many times in a row.
    """
    for _ in range(_TRIES_MAX - 1):
        try:
            rows: list[tuple[Any, ...]] = yield Query(sql, parameters)
        except Contended:
            yield Pause(random.uniform(0, _PAUSE_S_MAX))  # noqa: S311 - no secret
        else:
            return rows
    last: list[tuple[Any, ...]] = yield Query(sql, parameters)
    return last


def who(actor: str, reason: str) -> tuple[str, str]:
    """Actor and reason as the audit takes them.

    Raises:
        InvalidInput: one of them is empty, too long, or no text.
    """
    for name, text in (("actor", actor), ("reason", reason)):
        check_text(text, name)
        if not 1 <= len(text) <= _TEXT_CHARS_MAX:
            raise InvalidInput(f"{name} has 1 to {_TEXT_CHARS_MAX} characters", field=name)
    return actor, reason


def _unknown(attachment: int) -> InvalidInput:
    return InvalidInput(
        f"there is no attachment {attachment}", code="attachment_unknown", field="attachment"
    )


def _attachment(row: Sequence[Any]) -> Attachment:
    (id_, board, table, source, prefix, event_id, member, value, value_fixed, occurred_at, zone,
     ties, condition, on_update, on_delete, on_refusal, state, uncovered, rows_estimate, rows,
     applied, duplicate, parked, done_at, parked_open, made_at, detached_at) = row  # fmt: skip
    return Attachment(
        id=id_,
        spec=AttachmentSpec(
            board=board,
            table=table,
            event_id=event_id,
            member=member,
            value=value,
            value_fixed=value_fixed,
            occurred_at=occurred_at,
            zone=zone,
            ties=tuple(ties),
            condition=condition,
            prefix=prefix,
            on_update=on_update,
            on_delete=on_delete,
            on_refusal=on_refusal,
        ),
        source=source,
        state=state,
        uncovered=tuple(uncovered),
        rows_estimate=rows_estimate,
        backfill=Backfilled(rows=rows, applied=applied, duplicate=duplicate, parked=parked),
        backfill_done_at=done_at,
        parked_open=parked_open,
        made_at=made_at,
        detached_at=detached_at,
    )
