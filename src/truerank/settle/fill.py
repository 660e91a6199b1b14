"""Compute seasons that were added to boards with a past, a slice of members at a time."""

import threading

import structlog

from truerank.command import filling
from truerank.outbox.ticks import Connection
from truerank.settings import Settings
from truerank.settle.close import run_steps

_MEMBERS_MAX = 200  # in one slice
_PAUSE_S = 0.05


def fill_seasons(conn: Connection, settings: Settings, stop: threading.Event) -> float:
    """Compute the next members of each board that has such seasons; in how many seconds to go on.

    Args:
        conn: in autocommit mode.
        settings: of the process.
        stop: set where this is to end.
    """
    boards = run_steps(filling.boards_to_fill(), conn, stop)
    for board in boards:
        if run_steps(filling.fill_slice(board, _MEMBERS_MAX), conn, stop).done:
            log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.settle")
            log.info("seasons_filled", board=board)
    return _PAUSE_S if boards else settings.close_ms / 1000
