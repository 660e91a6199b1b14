"""`truerank freeze`, `reveal` and `freezes`: what the public is shown from an instant on."""

from typing import Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json, SeasonLabel
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.instants import read_instant
from truerank.read.members import freeze_json
from truerank.read.shapes import time_text

_NOW = "now"
_WAIT_S = 10.0


def freeze(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    every: Annotated[
        bool,
        Parameter(negative="", help="All seasons that hold then, at one and the same instant."),
    ] = False,
    at: Annotated[
        str, Parameter(help="When: now, or a time to come such as 2026-09-01T00:00:00Z.")
    ] = _NOW,
    reason: Reason,
    actor: Actor = None,
    wait_s: Annotated[
        float,
        Parameter(
            name="--wait-s", help="How many seconds to wait for others who are at work on it."
        ),
    ] = _WAIT_S,
    json: Json = False,
    given: Given,
) -> None:
    """Show the public a season as it is now, or at a time to come, until it is revealed.

    One that is to be frozen later is frozen by then, or now, never later. Scores go on. Who reads
    with TRUERANK_OPERATOR=true sees what is going on. The command returns once nobody else does.

    Args:
        board: The board's key.
    """
    instant = None if at == _NOW else read_instant(at, "at")
    with given.client(project=True) as client:
        found = client.freeze_season(
            board,
            season,
            every=every,
            at=instant,
            actor=login(actor),
            reason=reason,
            timeout_s=wait_s,
        )
    if json:
        write_json(freeze_json(found))
        return
    labels = found.together or (found.season,)
    several = len(labels) > 1
    when = (
        f"will be frozen at {time_text(found.due_at)}"
        if found.frozen_at is None
        else f"{'are' if several else 'is'} frozen as of {time_text(found.frozen_at)}"
    )
    named = f"season{'s' if several else ''} {', '.join(map(shown, labels))}"
    say(f"{named} of {shown(board)} {when}")
    if found.public:
        say(f"everybody sees on in {', '.join(map(shown, found.public))}; --every freezes all")


def reveal(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    every: Annotated[
        bool, Parameter(negative="", help="All seasons of the board that are frozen, or to be.")
    ] = False,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Show the public a frozen season again as it is, in one step.

    A freeze that was to come is called off.

    Args:
        board: The board's key.
    """
    with given.client() as client:
        revealed = client.reveal_season(
            board, season, every=every, actor=login(actor), reason=reason
        )
    if json:
        write_json({"board": board, "revealed": revealed})
    else:
        say(f"{shown(board)} is {'revealed' if revealed else 'not frozen'}")


def freezes(
    board: str | None = None,
    /,
    *,
    limit: int = 100,
    json: Json = False,
    given: Given,
) -> None:
    """Show which seasons are frozen, or were, latest first.

    Args:
        board: The board's key. Without it: of all boards.
        limit: No more than so many.
    """
    with given.client() as client:
        found = client.freezes(board, limit=limit)
    if json:
        write_json({"freezes": [freeze_json(each) for each in found]})
        return
    rows = [
        (
            escaped(each.board),
            escaped(each.season),
            time_text(each.due_at) or "",
            time_text(each.frozen_at) or "-",
            time_text(each.revealed_at) or "-",
        )
        for each in found
    ]
    head = ("board", "season", "due at", "frozen at", "revealed at")
    for line in table(head, rows, left="board season"):
        say(line)


COMMANDS = (
    (
        "freeze",
        freeze,
        (
            "truerank freeze project-a --reason 'last hour'",
            "truerank freeze project-a --every --reason 'last hour'",
            "truerank freeze project-a --season 2026-W35 --at 2026-08-30T21:00:00Z --reason finale",
        ),
    ),
    ("reveal", reveal, ("truerank reveal project-a --reason 'ceremony'",)),
    ("freezes", freezes, ("truerank freezes", "truerank freezes project-a --json")),
)
