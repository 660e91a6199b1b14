"""Let a board keep seasons of one more period, and compute those of its past."""

from dataclasses import dataclass

from truerank.command.attach import who
from truerank.command.board import check_known
from truerank.command.submit import check_text
from truerank.crashpoints import crashpoint
from truerank.errors import BoardUnknown, InvalidInput
from truerank.model import SeasonsFilling, Writer
from truerank.paging import check_whole
from truerank.steps import Query, Steps

_ADD = "SELECT truerank.add_period(%s, %s, %s, %s)"
_FILL = "SELECT outcome, members FROM truerank.fill_slice(%s, %s::integer)"
_FILLING = "SELECT periods, members_done, members FROM truerank.seasons_filling(%s)"
_WAITS = "SELECT pid, name, state, age_ms FROM truerank.filling_waits_for(%s)"
_COUNT = "SELECT truerank.count_filling(%s)"
_TO_FILL = "SELECT truerank.boards_to_fill()"
_SLICE_S_MAX = 60.0
_MEMBERS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What one slice came to. `waits`: others are in the way just now; `done`: it is the end."""

    members: int
    waits: bool
    done: bool


def add_period(board: str, period: str, *, actor: str, reason: str) -> Steps[bool]:
    """Let a board keep seasons of a period; True where it didn't.

    Raises:
        InvalidInput: there is no such period, or events of the board's past may be forgotten.
        BoardUnknown: no board has this key.
        Contended: who changes the board, or writes above READ COMMITTED, holds it.

    Source: `schema/functions/add_period.sql`.
    """
    check_text(board, "board")
    check_text(period, "period")
    ((outcome,),) = yield Query(_ADD, (board, period, *who(actor, reason)))
    check_known(outcome, board)
    if outcome == "period_unknown":
        raise InvalidInput("a period is one of all, day, week, month, year", field="period")
    if outcome == "history_incomplete":
        raise InvalidInput(
            f"seasons of board {board!r} can't be computed: some of its events are forgotten",
            field="period",
        )
    return bool(outcome == "added")


def fill_slice(board: str, members_max: int) -> Steps[Filled]:
    """Compute the new seasons of the next members.

    Raises:
        BoardUnknown: no board has this key.
        InvalidInput: `members_max` is outside 1 to 10,000.

    Source: `schema/functions/fill_slice.sql`.
    """
    check_text(board, "board")
    check_whole("members_max", members_max, _MEMBERS_MAX, least=1)
    ((outcome, members),) = yield Query(_FILL, (board, members_max), _SLICE_S_MAX)
    crashpoint("fill_slice")
    check_known(outcome, board)
    return Filled(members=members, waits=outcome == "waiting", done=outcome in {"done", "nothing"})


def seasons_filling(board: str, *, count: bool) -> Steps[SeasonsFilling]:
    """How far the added seasons of a board are computed.

    Args:
        board: the board's key.
        count: have the members counted where nobody has; that reads the board's history.

    Raises:
        BoardUnknown: no board has this key.

    Source: `schema/functions/seasons_filling.sql`, `count_filling.sql`, `filling_waits_for.sql`.
    """
    check_text(board, "board")
    rows = yield Query(_FILLING, (board,))
    if not rows:
        raise BoardUnknown(f"there is no board {board!r}", field="board")
    ((periods, members_done, members),) = rows
    waits_for: tuple[Writer, ...] = ()
    if periods:
        if count and members is None:
            ((members,),) = yield Query(_COUNT, (board,), _SLICE_S_MAX, slow=True)
        waits_for = tuple(
            Writer(pid=pid, name=name, state=state, age_ms=age_ms)
            for pid, name, state, age_ms in (yield Query(_WAITS, (board,)))
        )
    return SeasonsFilling(
        board=board,
        periods=tuple(periods),
        members_done=members_done,
        members=members,
        waits_for=waits_for,
    )


def boards_to_fill() -> Steps[list[str]]:
    """Boards whose added seasons aren't all computed yet.

    Source: `schema/functions/boards_to_fill.sql`.
    """
    rows = yield Query(_TO_FILL)
    return [key for (key,) in rows]
