"""Close what is due, on a worker's own connection.

The rules are in `truerank.command.closing`, as steps; here they are run, one statement after the
other. Nothing is kept between two calls: what is due is in PostgreSQL, so downtime is caught up.
"""

import threading
import time
from typing import Any

import psycopg
import structlog

from truerank.command import closing
from truerank.connections import translate
from truerank.outbox.ticks import Connection
from truerank.sessions import AWAY, LIMIT_TRANSACTION, SNAPSHOT, Limits
from truerank.settings import Settings
from truerank.steps import Pause, Query, Request, Steps, T, run_blocking

ACTOR = "truerank"
_DUE_MAX = 20  # at a time; what is left is due at once


def close_due(conn: Connection, settings: Settings, stop: threading.Event) -> float:
    """Close the seasons that are due, the oldest first; in how many seconds to look again.

    Nobody is waited for: a season whose writers are under way is tried again later, and others have
    their turn meanwhile. Safe beside other workers, and after one was killed at any point.

    Args:
        conn: in autocommit mode.
        settings: of the process.
        stop: ends the waiting for others.
    """
    closes = run_steps(
        closing.close_due(actor=ACTOR, limit=_DUE_MAX, timeout_s=0.0, patient=True), conn, stop
    )
    for each in closes:
        if each.waits is None:
            _log().info("season_closed", board=each.board, season=each.season)
        else:
            _log().warning(
                "season_waits", board=each.board, season=each.season, error=each.waits[:300]
            )
    if len(closes) == _DUE_MAX:
        return 0.0
    pauses_s = [each.again_s for each in closes if each.again_s is not None]
    return min([settings.close_ms / 1000, *pauses_s])


def run_steps(steps: Steps[T], conn: Connection, stop: threading.Event) -> T:
    """Run steps that need PostgreSQL alone, on one connection; `stop` ends their pauses."""
    return run_blocking(steps, lambda request: _do(request, conn, stop))


def _do(request: Request, conn: Connection, stop: threading.Event) -> Any:
    if isinstance(request, Pause):
        stop.wait(request.seconds)
        return float("inf") if stop.is_set() else time.monotonic()
    assert isinstance(request, Query), "to close takes PostgreSQL alone"
    try:
        if not (request.snapshot or request.slow):
            return conn.execute(request.sql, request.params, binary=True).fetchall()
        with conn.transaction():
            if request.snapshot:
                conn.execute(SNAPSHOT)
            limits = Limits(statement_ms=int((request.limit_s or 0.0) * 1000))
            conn.execute(LIMIT_TRANSACTION, limits.of_transaction())
            return conn.execute(request.sql, request.params, binary=True).fetchall()
    except AWAY:
        raise
    except psycopg.Error as exc:
        raise translate(exc) from exc


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.settle")
    return log
