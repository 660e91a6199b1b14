"""`truerank board update`, `rename` and `delete`, and `prune`: the rules of a board, audited."""

import json as json_text
import time
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import note, say, shown, write_json
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.read.shapes import season_json

_PAUSE_S = 0.05


def update(
    board: str,
    changes: Annotated[tuple[str, ...], Parameter(name="NAME=VALUE", consume_multiple=True)],
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Change rules of a board, for events that come from now on.

    NAME is one of value_min, value_max, total_min, total_max (in the last place), earliest_at,
    latest_at, future_max, late_grace, retention ("30 days"), rate_max (events per member and
    minute), accepting, or dense (true: Valkey keeps what it takes to count places densely; its
    copy of the board's group is filled anew where that changes). VALUE null takes an optional
    rule away. What would change existing results (operator, order, zone, decimals, seasons,
    tie-breaks) is fixed.

    Args:
        board: The board's key.
        changes: Such as rate_max=60 or late_grace="1 day".
    """
    named = dict(_change(text) for text in changes)
    with given.client() as client:
        changed = client.update_board(board, named, actor=login(actor), reason=reason)
    if json:
        write_json({"board": board, "changed": changed})
    else:
        say(f"board {shown(board)} {'changed' if changed else 'has these rules already'}")


def rename(
    board: str,
    key: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Give a board another key; its events, standings and used ids stay.

    Args:
        board: The board's key.
        key: The new one.
    """
    with given.client() as client:
        renamed = client.rename_board(board, key, actor=login(actor), reason=reason)
    if json:
        write_json({"board": key, "renamed": renamed})
    else:
        say(f"board {shown(board)} is now {shown(key)}")


def change_season(
    board: str,
    season: str,
    starts_at: str,
    ends_at: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Give a season of your own other bounds; its standings follow, all at once.

    Args:
        board: The board's key.
        season: Its label.
        starts_at: Such as 2026-06-01T00:00:00+02:00.
        ends_at: Likewise.
    """
    bounds = read_instant(starts_at, "starts_at"), read_instant(ends_at, "ends_at")
    with given.client() as client:
        changed = client.change_season(board, season, *bounds, actor=login(actor), reason=reason)
        found = client.season(board, season)
    if json:
        write_json({"changed": changed, "board": board, "season": season_json(found)})
    else:
        say(f"season {shown(season)} {'changed' if changed else 'has these bounds already'}")


def delete(
    board: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    yes: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """Take a board out of service and remove its standings and events.

    Args:
        board: The board's key.
        yes: Needed: nothing brings the events back.
    """
    if not yes:
        raise InvalidInput("--yes confirms that the board and its events go", field="yes")
    removed = 0
    with given.client() as client:
        client.delete_board(board, actor=login(actor), reason=reason)
        note(f"board {board!r} is out of service; removing its rows")
        while rows := client.purge_boards():
            removed += rows
    if json:
        write_json({"board": board, "removed": removed})
    else:
        say(f"board {shown(board)} deleted, {removed} rows removed")


def prune(
    board: str | None = None,
    /,
    *,
    wait_s: float = 10.0,
    json: Json = False,
    given: Given,
) -> None:
    """Forget events that are older than the retention of their boards, now.

    Workers do this by themselves, a few with each heartbeat. Standings stay as they are.

    Args:
        board: Only of this board; without it, of all.
        wait_s: How many seconds to wait for transactions that were open before.
    """
    removed = 0
    deadline = time.monotonic() + wait_s
    with given.client() as client:
        pruned = client.prune_events(board, at_once=True)
        while pruned.pending and time.monotonic() < deadline:
            removed += pruned.removed
            if pruned.removed:
                deadline = time.monotonic() + wait_s
            else:
                time.sleep(_PAUSE_S)
            pruned = client.prune_events(board)
        removed += pruned.removed
    if json:
        write_json({"board": board, "removed": removed, "pending": pruned.pending})
    else:
        waits = "; more will go when transactions that are open have ended"
        say(f"{removed} events forgotten{waits if pruned.pending else ''}")


def _change(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"{text!r} is no NAME=VALUE", field="changes")
    try:
        return name, json_text.loads(value)
    except ValueError:
        return name, value
