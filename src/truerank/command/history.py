"""Forget events that are older than their boards' retention, and keep what they came to."""

from dataclasses import dataclass

from truerank.command.board import find_board
from truerank.paging import check_whole
from truerank.steps import Query, Steps

_PRUNE = "SELECT removed, pending FROM truerank.prune_events(%s, %s, %s::interval)"
_ROWS_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one call did. `pending`: there is more to do, or somebody is waited for."""

    removed: int
    pending: bool


def prune_events(
    board: str | None = None, *, rows_max: int = 1000, at_once: bool = False
) -> Steps[Pruned]:
    """Forget a slice of the events that occurred before their boards' retention.

    Standings stay as they are. Safe to repeat, and from several processes.

    Args:
        board: only of this one; None: of all.
        rows_max: events in the slice; those of one instant go together.
        at_once: also where the last time was less than an hour ago.

    Raises:
        BoardUnknown: no board has this key.
        InvalidInput: `rows_max` is outside 1 to 100,000.

    Source: `schema/functions/prune_events.sql`.
    """
    if board is not None:
        yield from find_board(board)
    check_whole("rows_max", rows_max, _ROWS_MAX, least=1)
    ((removed, pending),) = yield Query(
        _PRUNE, (rows_max, board, "0 seconds" if at_once else "1 hour")
    )
    return Pruned(removed=removed, pending=pending)
