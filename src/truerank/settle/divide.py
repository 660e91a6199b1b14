"""Divide members into cohorts, on a worker's own connection.

The rules are in `truerank.command.leagues`, as steps.
"""

import threading

from truerank.command import leagues
from truerank.outbox.ticks import Connection
from truerank.settle.close import run_steps

_PAUSE_S = 1.0  # every worker asks


def divide_members(conn: Connection, stop: threading.Event) -> float:
    """Do a piece of what is to be done; in how many seconds to look again.

    Safe beside other workers, and after one was killed at any point.

    Args:
        conn: in autocommit mode.
        stop: ends the waiting for others.
    """
    return 0.0 if run_steps(leagues.divide(), conn, stop) else _PAUSE_S
