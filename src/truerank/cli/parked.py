"""`truerank attachment parked`, `retry`, `dismiss`: what boards did not take from tables."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.command.parked import Parked

_STAYS_PARKED = 1
_PAGE = 1000


def show_parked(
    attachment: int | None = None,
    /,
    *,
    settled: Annotated[bool, Parameter(name="--all", negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """List the rows that boards did not take, the oldest first.

    Args:
        attachment: Only of this attachment.
        settled: Also those that were taken in since, superseded by their row, or dismissed.
    """
    from truerank.command.parked import list_parked

    found: list[Parked] = []
    with given.client() as client:
        while page := client.run(
            list_parked(attachment, after=found[-1].id if found else 0, limit=_PAGE, done=settled)
        ):
            found += page
    if json:
        write_json({"parked": [_parked_json(row) for row in found]})
        return
    rows = [
        (
            str(row.id),
            str(row.attachment),
            row.done or row.action,
            row.code,
            row.value or "-",
            row.occurred_at or "-",
            "-" if row.member is None else shown(row.member),
            "-" if row.event_id is None else escaped(row.event_id),
        )
        for row in found
    ]
    headers = ("id", "attachment", "action", "code", "value", "time", "member", "event")
    for line in table(headers, rows, left="action code time member event"):
        say(line)


def retry(
    parked: int,
    /,
    *,
    member: str | None = None,
    value: str | None = None,
    occurred_at: Annotated[str | None, Parameter(name="--at")] = None,
    actor: Actor = None,
    reason: Reason = "command line",
    json: Json = False,
    given: Given,
) -> int:
    """Try a parked row again, mended or as it is. Exit status 1: it stays parked.

    Args:
        parked: Its id, as `truerank attachment parked` shows it.
        member: Another member.
        value: Another value, in the board's unit.
        occurred_at: Another time, such as 2026-08-29T12:00:00Z.
    """
    from truerank.command.parked import retry_parked

    number = None if value is None else read_value(value, "value")
    at = None if occurred_at is None else read_instant(occurred_at, "occurred_at")
    with given.client() as client:
        outcome = client.run(
            retry_parked(
                parked,
                actor=login(actor),
                reason=reason,
                member=member,
                value=number,
                occurred_at=at,
            )
        )
    settled = outcome in {"taken", "superseded", "dismissed"}
    if json:
        write_json({"parked": parked, "settled": settled, "outcome": outcome})
    else:
        say(f"parked row {parked}: {outcome}" if settled else f"stays parked: {outcome}")
    return 0 if settled else _STAYS_PARKED


def dismiss(
    parked: int,
    /,
    *,
    actor: Actor = None,
    reason: Reason,
    json: Json = False,
    given: Given,
) -> None:
    """Close a parked row without taking it in.

    Args:
        parked: Its id, as `truerank attachment parked` shows it.
    """
    from truerank.command.parked import dismiss_parked

    with given.client() as client:
        outcome = client.run(dismiss_parked(parked, actor=login(actor), reason=reason))
    if json:
        write_json({"parked": parked, "outcome": outcome})
    else:
        say(f"parked row {parked}: {outcome}")


def _parked_json(row: "Parked") -> dict[str, object]:
    return asdict(row) | {
        "ties": [str(tie) for tie in row.ties],
        "parked_at": time_text(row.parked_at),
        "tried_at": time_text(row.tried_at),
        "done_at": time_text(row.done_at),
    }
