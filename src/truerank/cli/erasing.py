"""`truerank member erase`: remove a person from everything, and see how far that has come."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import note, say, table, write_json
from truerank.read.members import erasure_json
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.model import Erasure

_COMPLETE_S = 60.0


def erase(
    member: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    complete_s: Annotated[
        float,
        Parameter(
            name="--complete-s",
            help="How many seconds to wait until nothing names the person any more.",
        ),
    ] = _COMPLETE_S,
    json: Json = False,
    given: Given,
) -> None:
    """Remove a person from everything: its ids, names and metadata. It can't be undone.

    Out of sight at once. The events keep board, value and time under a stand-in and count no
    longer. Complete once no worker's copy and no log names the person any more.

    Args:
        member: The member's id, or one that was merged into it. All of them are erased.
    """
    with given.client(project=True) as client:
        begun = client.erase_member(member, actor=login(actor), reason=reason)
        erasure = client.wait_erased(begun.id, timeout_s=complete_s)
    if json:
        write_json(erasure_json(erasure))
        return
    say(f"erasure {erasure.id}: {_state(erasure)}")
    if begun.pending:
        note(
            "PostgreSQL answers without the person; the projection did not in time: is a worker up?"
        )
    if not erasure.complete:
        note("out of sight, and not yet complete: a worker goes on with it; is one up?")


def erasures(
    *,
    limit: int = 100,
    json: Json = False,
    given: Given,
) -> None:
    """Show erasures, latest first. They name nobody.

    Args:
        limit: No more than so many.
    """
    with given.client() as client:
        found = client.erasures(limit=limit)
    if json:
        write_json({"erasures": [erasure_json(each) for each in found]})
        return
    rows = [
        (
            each.id,
            time_text(each.asked_at) or "",
            time_text(each.erased_at) or "-",
            "-" if each.events is None else str(each.events),
        )
        for each in found
    ]
    for line in table(("erasure", "asked at", "erased at", "events"), rows, left="erasure"):
        say(line)


COMMANDS = (
    ("erase", erase, ("truerank member erase ada --reason 'request 12'",)),
    ("erasures", erasures, ("truerank member erasures", "truerank member erasures --json")),
)


def _state(erasure: "Erasure") -> str:
    if not erasure.complete:
        return "under way"
    events = "event" if erasure.events == 1 else "events"
    return f"complete, {erasure.events} {events} left without a name"
