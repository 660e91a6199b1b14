"""`truerank board add-seasons`: seasons of another period on a board that has a past."""

import sys
import time
from typing import Literal

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import Given, Json
from truerank.cli.output import say, shown, write_json

_SLICE = 500
_PAUSE_S = 0.1


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
    from rich.console import Console
    from rich.progress import Progress

    members = 0
    with given.client() as client:
        added = client.add_seasons(board, period, actor=login(actor), reason=reason)
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
            total = client.count_members(board) if sys.stderr.isatty() else None
            task = bar.add_task("members", total=total)
            while not (filled := client.fill_seasons(board, members_max=_SLICE)).done:
                members += filled.members
                bar.advance(task, filled.members)
                if filled.waits:
                    time.sleep(_PAUSE_S)
    if json:
        write_json({"board": board, "period": period, "added": added, "members": members})
    else:
        what = "now has" if added else "has"
        say(f"board {shown(board)} {what} seasons by {period}; {members} members computed")


COMMANDS = (
    (
        "add-seasons",
        add_seasons,
        ("truerank board add-seasons project-a day --reason 'a daily page'",),
    ),
)
