"""Freeze what is due, on a worker's own connection; and remove what is shown no longer.

The rules are in `truerank.command.freezing`, as steps.
"""

import threading

from truerank.command import freezing
from truerank.outbox.ticks import Connection
from truerank.settle.close import run_steps

_PAUSE_S = 0.5


def keep_freezes(conn: Connection, stop: threading.Event) -> float:
    """Do a piece of what is due; in how many seconds to look again.

    Safe beside other workers, and after one was killed at any point.

    Args:
        conn: in autocommit mode.
        stop: ends the waiting for others.
    """
    return 0.0 if run_steps(freezing.work(), conn, stop) else _PAUSE_S
