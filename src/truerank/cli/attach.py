"""`truerank attach`, `detach`, `attachment`: tables whose rows are the events of a board.

What boards did not take: `truerank.cli.parked`.
"""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from cyclopts import Parameter

from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, note, pairs, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.intake.fields import read_value
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.client import Truerank
    from truerank.command.attach import Attachment, Backfilled

_WARNINGS = {
    "event_id_not_indexed": "no index begins with the event id: a backfill sorts the whole table "
    "for every slice",
    "event_id_not_unique": "the event id is not unique: of rows with one id only the first counts",
    "event_id_nullable": "the event id may be null: such rows are parked, and a backfill passes "
    "them over",
    "occurred_at_missing": "no column says when it happened: a row counts at the time it comes",
}

Actor = Annotated[
    str | None,
    Parameter(name="--actor", help="Who does it, for the audit. Without it, your login."),
]
Reason = Annotated[str, Parameter(name="--reason", help="Why, for the audit.")]


class _Progress(Protocol):
    def __call__(self, part: "Backfilled", /) -> None: ...


def attach(
    board: str,
    relation: Annotated[str, Parameter(name="TABLE")],
    /,
    *,
    event_id: str,
    member: str,
    value: str | None = None,
    value_fixed: str | None = None,
    occurred_at: Annotated[str | None, Parameter(name="--at")] = None,
    zone: str | None = None,
    ties: Annotated[tuple[str, ...], Parameter(name="--tie", negative=())] = (),
    condition: str | None = None,
    prefix: str = "",
    on_update: Literal["correct", "ignore", "refuse"] = "correct",
    on_delete: Literal["void", "ignore", "refuse"] = "void",
    on_refusal: Literal["park", "raise"] = "park",
    backfill: Annotated[bool, Parameter(negative=())] = False,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """Make the rows of a table the events of a board, in the transactions that write them.

    Safe to repeat: partitions that came meanwhile are covered, a backfill goes on where it was.

    Args:
        board: The board's key.
        relation: As SQL writes it, such as completion or shop."Order"; without a schema: public.
        event_id: The column that names a row for ever.
        member: The column of the member's id.
        value: The column of the value, in the board's unit: whole numbers or numeric.
        value_fixed: What every row counts, instead of a column.
        occurred_at: The column of when it happened. Without it, when the row comes.
        zone: The IANA zone that is meant, where that column has none.
        ties: A column for each tie-break of the board, in their order.
        condition: SQL on the columns of a row; rows for which it isn't true are no events.
        prefix: Goes before every event id, so that two tables don't meet on one board.
        on_update: What a changed row means: correct its event, nothing, or fail the statement.
        on_delete: What a deleted row means: void its event, nothing, or fail the statement.
        on_refusal: What becomes of a row that the board refuses: park it, or fail the statement.
        backfill: Take in the rows that are there already.
    """
    from truerank.command.attach import AttachmentSpec, attach_table

    spec = AttachmentSpec(
        board=board,
        table=relation,
        event_id=event_id,
        member=member,
        value=value,
        value_fixed=None if value_fixed is None else read_value(value_fixed, "value_fixed"),
        occurred_at=occurred_at,
        zone=zone,
        ties=ties,
        condition=condition,
        prefix=prefix,
        on_update=on_update,
        on_delete=on_delete,
        on_refusal=on_refusal,
    )
    with given.client() as client:
        attached = client.run(attach_table(spec, actor=login(actor), reason=reason))
        for warning in attached.warnings:
            note(f"warning[{warning}]: {_WARNINGS[warning]}")
        if not json:
            done = "attached" if attached.created else "attached already"
            say(f"table {escaped(relation)} {done} to board {shown(board)}: {attached.id}")
        counts = _filled(client, attached.id, login(actor)) if backfill else None
    if json:
        write_json(
            {
                "attachment": attached.id,
                "created": attached.created,
                "warnings": attached.warnings,
                "backfill": None if counts is None else asdict(counts),
            }
        )
    elif counts is not None:
        _say_counts(counts)


def detach(
    attachment: int,
    /,
    *,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> None:
    """End an attachment: its triggers go, its events and what is parked stay.

    Args:
        attachment: Its number, as `truerank attachment list` shows it.
    """
    from truerank.command.attach import detach_table

    with given.client() as client:
        whole = client.run(detach_table(attachment, actor=login(actor), reason=reason))
    if not whole:
        note(
            "its triggers belong to another role: they do nothing now, and that role may drop them"
        )
    if json:
        write_json({"attachment": attachment, "triggers_left": not whole})
    else:
        say(f"attachment {attachment} detached")


def show_all(*, json: Json = False, given: Given) -> None:
    """List the tables that feed boards, with how far their backfills are and what is parked."""
    from truerank.command.attach import list_attachments

    with given.client() as client:
        found = client.run(list_attachments())
    if json:
        write_json({"attachments": [_attachment_json(one) for one in found]})
        return
    rows = [
        (
            str(one.id),
            one.state,
            _backfill_words(one),
            str(one.parked_open),
            shown(one.spec.board),
            escaped(one.spec.table),
        )
        for one in found
    ]
    headers = ("attachment", "state", "backfill", "parked", "board", "table")
    for line in table(headers, rows, left="state backfill board table"):
        say(line)
    for one in found:
        if one.uncovered and one.state == "incomplete":
            tables = ", ".join(escaped(name) for name in one.uncovered)
            note(f"attachment {one.id} does not see: {tables}; attach again to cover them")


def run_backfill(
    attachment: int,
    /,
    *,
    restart: Annotated[bool, Parameter(negative=())] = False,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Take in the rows that were in a table before it was attached, while new ones arrive.

    May be ended at any point: what is done is done, and the next run goes on there.

    Args:
        attachment: Its number.
        restart: Begin at the first row again; what is known adds nothing.
    """
    with given.client() as client:
        counts = _filled(client, attachment, login(actor), restart=restart)
    if json:
        write_json({"attachment": attachment, "backfill": asdict(counts)})
    else:
        _say_counts(counts)


def _filled(
    client: "Truerank", attachment: int, actor: str, *, restart: bool = False
) -> "Backfilled":
    from truerank.command.attach import backfill, find_attachment

    found = client.run(find_attachment(attachment))
    seen = 0 if restart else found.backfill.rows
    with _watched(found.rows_estimate, seen) as progress:
        return client.run(backfill(attachment, actor=actor, progress=progress, restart=restart))


@contextmanager
def _watched(total: int | None, seen: int) -> "Iterator[_Progress]":
    """A progress bar on standard error where that is a terminal; the total is an estimate."""
    if not sys.stderr.isatty():
        yield lambda _part: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=seen)
        yield lambda part: bar.advance(task, part.rows)


def login(actor: str | None) -> str:
    """Who does it: as given, or the login.

    Raises:
        InvalidInput: the account has no name, and none is given.
    """
    if actor is not None:
        return actor
    try:
        return getpass.getuser()
    except (OSError, KeyError) as exc:  # an account without a name, as in containers
        raise InvalidInput(
            "your account has no name: give one with --actor", field="actor"
        ) from exc


def _say_counts(counts: "Backfilled") -> None:
    rows = [
        ("rows", str(counts.rows)),
        ("applied", str(counts.applied)),
        ("duplicate", str(counts.duplicate)),
        ("parked", str(counts.parked)),
    ]
    for line in pairs(rows):
        say(line)


def _backfill_words(one: "Attachment") -> str:
    if one.backfill_done_at is not None:
        return f"done, {one.backfill.rows} rows"
    return f"{one.backfill.rows} rows so far" if one.backfill.rows else "not begun"


def _attachment_json(one: "Attachment") -> dict[str, Any]:
    return {
        "attachment": one.id,
        "state": one.state,
        **asdict(one.spec),
        "source": one.source,
        "uncovered": one.uncovered,
        "rows_estimate": one.rows_estimate,
        "backfill": asdict(one.backfill),
        "backfill_done_at": time_text(one.backfill_done_at),
        "parked": one.parked_open,
        "made_at": time_text(one.made_at),
        "detached_at": time_text(one.detached_at),
    }
