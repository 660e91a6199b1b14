"""`truerank member`: hide, ban, reset, delete and merge members, and see what was said of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, note, say, shown, table, write_json
from truerank.instants import read_instant
from truerank.read.members import member_change_json, member_states_json
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.client import Truerank
    from truerank.model import MemberChange

_DEFAULT_WAIT_S = 2.0

OnBoard = Annotated[
    str | None, Parameter(name="--board", help="On this board only. Without it: everywhere.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Saying:
    """Who says something of a member, why, and how long it waits."""

    reason: Reason
    actor: Actor = None
    wait_s: Annotated[
        float,
        Parameter(name="--wait-s", help="How many seconds to wait until the projection shows it."),
    ] = _DEFAULT_WAIT_S

    def how(self) -> dict[str, Any]:
        """The same for a client."""
        return {"actor": login(self.actor), "reason": self.reason, "timeout_s": self.wait_s}


def hide(
    member: str,
    /,
    *,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Let a member take no place, by its own wish; its scores go on.

    Args:
        member: The member's id.
    """
    _run(
        given,
        lambda client: client.hide_member(member, board=board, **saying.how()),
        json=json,
    )


def show(
    member: str,
    /,
    *,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Take a member's wish to be hidden back; a ban stays.

    Args:
        member: The member's id.
    """
    _run(
        given,
        lambda client: client.show_member(member, board=board, **saying.how()),
        json=json,
    )


def ban(
    member: str,
    /,
    *,
    until: str | None = None,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Let a member take no place until a time, or for good; its scores go on.

    Args:
        member: The member's id.
        until: When the ban ends by itself, such as 2026-09-01T00:00:00Z.
    """
    ends_at = None if until is None else read_instant(until, "until")
    _run(
        given,
        lambda client: client.ban_member(member, until=ends_at, board=board, **saying.how()),
        json=json,
    )


def unban(
    member: str,
    /,
    *,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Lift a ban; who had hidden stays hidden.

    Args:
        member: The member's id.
    """
    _run(
        given,
        lambda client: client.unban_member(member, board=board, **saying.how()),
        json=json,
    )


def reset(
    member: str,
    /,
    *,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Let a member begin at zero: its events up to now count no longer. Its state stays.

    Args:
        member: The member's id.
    """
    _run(
        given,
        lambda client: client.reset_member(member, board=board, **saying.how()),
        json=json,
    )


def delete(
    member: str,
    /,
    *,
    board: OnBoard = None,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Take a member away: its events count no longer, and what was said of it is over.

    What comes later begins at zero, and in sight. The events stay on record.

    Args:
        member: The member's id.
    """
    _run(
        given,
        lambda client: client.delete_member(member, board=board, **saying.how()),
        json=json,
    )


def merge(
    member: str,
    into: str,
    /,
    *,
    saying: Saying,
    json: Json = False,
    given: Given,
) -> None:
    """Let the events of one member count for another, on all boards and for good.

    Args:
        member: Whose standings go. What is submitted for it from now on counts for the other.
        into: The member that remains.
    """
    _run(
        given,
        lambda client: client.merge_members(member, into, **saying.how()),
        json=json,
    )


def state(
    member: str,
    /,
    *,
    json: Json = False,
    given: Given,
) -> None:
    """Show what was said of a member, everywhere and by board.

    Args:
        member: The member's id.
    """
    with given.client() as client:
        scopes = client.member_states(member)
    if json:
        write_json(member_states_json(member, scopes))
        return
    if not scopes:
        say(f"{shown(member)} is active on every board")
        return
    rows = [
        (
            scope.state.value,
            time_text(scope.until) or "-",
            time_text(scope.changed_at) or "",
            "everywhere" if scope.board is None else escaped(scope.board),
        )
        for scope in scopes
    ]
    for line in table(("state", "until", "since", "board"), rows, left="state board"):
        say(line)
    for scope in scopes:
        if scope.merged_into is not None:
            say(f"{shown(member)} counts for {shown(scope.merged_into)}")


COMMANDS = (
    (
        "hide",
        hide,
        (
            "truerank member hide ada --reason 'asked for it'",
            "truerank member hide ada --board project-a --reason 'asked for it'",
        ),
    ),
    ("show", show, ("truerank member show ada --reason 'asked for it'",)),
    (
        "ban",
        ban,
        (
            "truerank member ban mallory --reason cheats",
            "truerank member ban mallory --until 2027-01-01T00:00:00Z --reason spam",
        ),
    ),
    ("unban", unban, ("truerank member unban mallory --reason 'a mistake'",)),
    ("reset", reset, ("truerank member reset ada --board project-a --reason 'begins anew'",)),
    ("delete", delete, ("truerank member delete ada --reason 'left us'",)),
    ("merge", merge, ("truerank member merge ada-old ada --reason 'two accounts'",)),
    ("state", state, ("truerank member state mallory", "truerank member state ada --json")),
)


def _run(given: Given, command: "Callable[[Truerank], MemberChange]", *, json: bool) -> None:
    with given.client(project=True) as client:
        change = command(client)
    if json:
        write_json(member_change_json(change))
        return
    where = "everywhere" if change.board is None else f"on {shown(change.board)}"
    until = "" if change.until is None else f" until {time_text(change.until)}"
    into = "" if change.merged_into is None else f" into {shown(change.merged_into)}"
    again = "" if change.changed else ", as before"
    say(f"{shown(change.member)} is {change.state.value}{into}{until} {where}{again}")
    if not change.known:
        note("no event is of this id: is it spelt right?")
    if change.pending:
        note("PostgreSQL answers by it; the projection does not show it yet: is a worker up?")
