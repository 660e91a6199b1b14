"""`truerank void`, `amend` and `explain`: put right what was recorded, and see what counts."""

import uuid
from decimal import Decimal
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json, SeasonLabel
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.model import MemberState, Operator, Outcome, Receipt
from truerank.read.explain import ExplainedEvent
from truerank.read.shapes import receipt_json, time_text

_REFUSED = 1


def void(
    board: str,
    event_ids: Annotated[tuple[str, ...], Parameter(name="EVENT", consume_multiple=True)] = (),
    /,
    *,
    member: str | None = None,
    source: str | None = None,
    since: str | None = None,
    until: str | None = None,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> int:
    """Take events out of every standing, as if they had never happened; they stay on record.

    Args:
        board: The board's key.
        event_ids: As they were submitted. Without any: all that the options name.
        member: All events of this member.
        source: All events of this source.
        since: Only what occurred at this time or later.
        until: Only what occurred before this time.
    """
    first = None if since is None else read_instant(since, "since")
    end = None if until is None else read_instant(until, "until")
    if bool(event_ids) == any((member, source, first, end)):
        raise InvalidInput("name events, or a member, a source or a time, not both", field="event")
    by = login(actor)
    with given.client() as client:
        if event_ids:
            receipts = client.void_events(board, event_ids, actor=by, reason=reason)
            if json:
                write_json({"board": board, "results": [receipt_json(r) for r in receipts]})
            else:
                _say_receipts(receipts)
            return _REFUSED if any(r.outcome is Outcome.REFUSED for r in receipts) else 0
        voided = 0
        while count := client.void_where(
            board, actor=by, reason=reason, member=member, source=source, since=first, until=end
        ):
            voided += count
    if json:
        write_json({"board": board, "voided": voided})
    else:
        say(f"{voided} events voided")
    return 0


def amend(
    board: str,
    event_id: str,
    value: str,
    /,
    *,
    correction_id: str | None = None,
    ties: Annotated[tuple[int, ...], Parameter(name="--tie", negative=())] = (),
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Let an event count with another value, at the time it always had.

    Args:
        board: The board's key.
        event_id: As it was submitted.
        value: In the board's unit.
        correction_id: Names this correction for ever: sent again, it changes nothing. Without
            it, a new one.
        ties: A value for each tie-break of the board, in their order.
    """
    number = read_value(value, "value")
    with given.client() as client:
        receipt = client.amend_event(
            board,
            event_id,
            number,
            correction_id=str(uuid.uuid4()) if correction_id is None else correction_id,
            actor=login(actor),
            reason=reason,
            ties=ties,
        )
    if json:
        write_json({"board": board} | receipt_json(receipt))
    else:
        _say_receipts([receipt])


def explain(
    board: str,
    member: str,
    /,
    *,
    season: SeasonLabel = None,
    json: Json = False,
    given: Given,
) -> None:
    """List the events that a member's score is made of, in the order in which they count.

    On a board that sums, the last column adds them up.

    Args:
        board: The board's key.
        member: The member's id.
    """
    with given.client() as client:
        spec = client.board(board).spec
        named = client.season(board, season)
        events = client.explain(board, member, named.label)
        standing = client.standing(board, member, named.label)
        page = client.place(board, member, named.label, source="database")
    place = page.places[0]
    score = None if standing is None else standing.score
    if json:
        write_json(
            {
                "board": board,
                "season": named.label,
                "member": member,
                "score": score,
                "state": place.state.value,
                "rank": place.rank,
                "events": [
                    {
                        "event_id": event.event_id,
                        "occurred_at": time_text(event.occurred_at),
                        "received_at": time_text(event.received_at),
                        "position": str(event.position),
                        "value": str(event.value),
                        "first_value": str(event.first_value),
                        "ties": [str(tie) for tie in event.ties],
                        "state": event.state,
                        "source": event.source,
                        "metadata": event.metadata,
                    }
                    for event in events
                ],
            }
        )
        return
    sums = spec.operator is Operator.SUM
    total = Decimal(0)
    rows = []
    for event in events:
        counts = event.state not in {"void", "ended", "merged"}
        total += event.value if counts else 0
        rows.append(
            (
                time_text(event.occurred_at) or "",
                str(event.value) if counts else f"({event.value})",
                event.state if event.state != "amended" else f"amended, first {event.first_value}",
                str(total) if spec.operator == "sum" else "",
                _named(event),
            )
        )
    say(f"{shown(member)} on {shown(board)}, season {escaped(named.label)}")
    headers = ("occurred at", "value", "counts", *(["total"] if sums else []), "event")
    for line in table(headers, rows, left="counts event"):
        say(line)
    unseen = "" if place.state is MemberState.ACTIVE else f", {place.state.value}"
    made_of = f"{spec.operator.value} of {sum(map(_many, events))} events"
    say(f"score {score or 'none'}, {made_of}{unseen}")


def _named(event: ExplainedEvent) -> str:
    if event.event_id is not None:
        return escaped(event.event_id)
    return f"({_many(event) or 'all'} forgotten)"


def _many(event: ExplainedEvent) -> int:
    """How many events a row stands for; 0 where that is forgotten too."""
    if event.event_id is not None:
        return 1
    return int(event.metadata["events"]) if event.metadata else 0


def _say_receipts(receipts: list[Receipt]) -> None:
    for receipt in receipts:
        code = f" ({receipt.code})" if receipt.code else ""
        say(f"{receipt.outcome.value}{code}: event {escaped(receipt.event_id)}")
        rows = [(now.score or "none", escaped(now.season)) for now in receipt.standings]
        for line in table(("score", "season"), rows, left="season") if rows else ():
            say(line)
