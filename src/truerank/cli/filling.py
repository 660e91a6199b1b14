"""`truerank board add-seasons` and `filling`: seasons of another period on a board with a past."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import duration_words, escaped, note, pairs, say, shown, write_json
from truerank.cli.progress import counting_bar
from truerank.model import Writer

if TYPE_CHECKING:
    from truerank.client import Truerank

_PAUSE_S = 0.1
_SLICE = 500  # members between two looks at how far it is


def add_seasons(
    board: str,
    period: Literal["all", "day", "week", "month", "year"],
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Let a board keep seasons of one more period, and compute those of its past from its events.

    Scores are taken meanwhile. The new seasons are shown once all of them are there. Safe to
    repeat: where it was ended, it goes on; workers go on with it as well.

    Args:
        board: The board's key.
        period: all, day, week, month or year.
    """
    with given.client() as client, counting_bar("members") as bar:
        added = client.add_seasons(board, period, actor=login(actor), reason=reason)
        members = _fill(client, board, bar)
    if json:
        write_json({"board": board, "period": period, "added": added, "members": members})
    else:
        what = "now has" if added else "has"
        say(f"board {shown(board)} {what} seasons by {period}; {members} members computed")


def filling(
    board: str,
    /,
    *,
    count: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """Show how far the seasons are computed that were added to a board.

    Args:
        board: The board's key.
        count: Count the members where nobody has yet; that reads the board's history.
    """
    from truerank.read.filling import seasons_filling_json

    with given.client() as client:
        found = client.seasons_filling(board, count=count)
    if json:
        write_json(seasons_filling_json(found))
        return
    if not found.periods:
        say(f"board {shown(board)} has all its seasons")
        return
    of = "" if found.members is None else f" of about {found.members}"
    rows = [
        ("board", shown(board)),
        ("periods", ", ".join(found.periods)),
        ("members", f"{found.members_done}{of}"),
        *(("waits for", _described(writer)) for writer in found.waits_for),
    ]
    for line in pairs(rows):
        say(line)


def _fill(client: "Truerank", board: str, bar: Callable[[int, int], None] | None) -> int:
    """Compute until all is there; how many members this took."""
    told: set[int | None] = set()
    members = 0
    total: int | None = None
    while True:
        filled = client.fill_seasons(board, members_max=_SLICE)
        members += filled.members
        if filled.done:
            return members
        if bar is None and not filled.waits:
            continue
        # Counted once: where another is at work on the board the number isn't remembered.
        far = client.seasons_filling(board, count=bar is not None and total is None)
        if bar is not None:
            total = total or far.members
            bar(far.members_done, total or 0)  # with what another has computed
        if filled.waits:
            _tell(far.waits_for, told)
            time.sleep(_PAUSE_S)  # nobody is told when a transaction ends


def _tell(writers: Iterable[Writer], told: set[int | None]) -> None:
    """Say who is waited for, once of each."""
    for writer in writers:
        if writer.pid not in told:
            told.add(writer.pid)
            note(f"waiting for a transaction {_described(writer)}")


def _described(writer: Writer) -> str:
    age = duration_words(writer.age_ms or 0)
    return f"open for {age}: {escaped(writer.name or '?')}, pid {writer.pid}"


COMMANDS = (
    (
        "add-seasons",
        add_seasons,
        ("truerank board add-seasons project-a day --reason 'a daily page'",),
    ),
    (
        "filling",
        filling,
        ("truerank board filling project-a", "truerank board filling project-a --count --json"),
    ),
)
