"""`truerank submit`: one score."""

import json as json_text
import uuid
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.model import Receipt
from truerank.read.shapes import receipt_json


def submit(
    board: str,
    member: str,
    value: str,
    /,
    *,
    event_id: str | None = None,
    occurred_at: Annotated[str | None, Parameter(name="--at")] = None,
    ties: Annotated[tuple[int, ...], Parameter(name="--tie", negative=())] = (),
    metadata: str | None = None,
    expected_season: str | None = None,
    expected_operator: str | None = None,
    wait: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """Record one score; safe to repeat under the same event id.

    Args:
        board: The board's key.
        member: The member's id, exact text.
        value: In the board's unit, such as 5, -5 or 12.345.
        event_id: Names this score for ever: sent again, it counts once. Without it, a new one.
        occurred_at: When it happened, such as 2026-08-29T12:00:00Z. Without it, now.
        ties: A value for each tie-break of the board, in their order.
        metadata: JSON kept with the event.
        expected_season: Refuse the score unless it falls into the season of this label.
        expected_operator: Refuse the score unless the board has this operator.
        wait: Return only when the projection shows it.
    """
    number = read_value(value, "value")
    at = None if occurred_at is None else read_instant(occurred_at, "occurred_at")
    with given.client(project=wait) as client:
        receipt = client.submit_score(
            board,
            event_id=str(uuid.uuid4()) if event_id is None else event_id,
            member=member,
            value=number,
            occurred_at=at,
            ties=ties,
            metadata=None if metadata is None else _parsed(metadata),
            expected_season=expected_season,
            expected_operator=expected_operator,
        )
        if wait and receipt.token is not None:
            client.wait_visible(receipt.token, [board])
    if json:
        write_json({"board": board} | receipt_json(receipt))
    else:
        _say_receipt(receipt, member)


def _say_receipt(receipt: Receipt, member: str) -> None:
    say(f"{receipt.outcome.value}: event {escaped(receipt.event_id)} of {shown(member)}")
    rows = [(now.score or "-", escaped(now.season)) for now in receipt.standings]
    for line in table(("score", "season"), rows, left="season"):
        say(line)


def _parsed(text: str) -> object:
    try:
        return json_text.loads(text)
    except ValueError as exc:
        raise InvalidInput(f"metadata is no JSON: {exc}", field="metadata") from exc
