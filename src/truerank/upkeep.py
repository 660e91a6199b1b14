"""Chores: what a worker's process does beside projecting, in threads of their own.

The projector waits for none of them, and no lane of chores for another. Each chore is bounded, safe
to run again, and safe beside the same chore of other workers: whoever needs to be alone locks what
it works on.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg
import structlog

from truerank.deliver.deliverer import Deliverer
from truerank.errors import DatabaseUnavailable, TruerankError
from truerank.outbox.retention import Retention
from truerank.outbox.ticks import Connection
from truerank.projection import worker
from truerank.projection.link import Link
from truerank.projection.trouble import Backoff
from truerank.repair.athand import BoardsAtHand
from truerank.repair.routine import Routine
from truerank.sessions import AWAY
from truerank.settings import Settings
from truerank.settle.close import close_due
from truerank.settle.divide import divide_members
from truerank.settle.fill import fill_seasons
from truerank.settle.freeze import keep_freezes
from truerank.telemetry.meter import Meter

_WAIT_S_MAX = 60.0
_PATIENCE_S = 2.0  # with a chore that is to end
_AWAY: tuple[type[Exception], ...] = (DatabaseUnavailable, *AWAY)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a chore works with; its own, but for the meter.

    `conn` is in autocommit mode and has a deadline for statements.
    """

    settings: Settings
    conn: Connection
    link: Link
    meter: Meter
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class Chore:
    """A job that is done again and again.

    `run` does a bounded piece of it and returns in how many seconds the next piece is due; it may
    raise any `TruerankError`, and what psycopg raises when PostgreSQL is away.

    Chores of one lane take turns, on one connection. One whose pieces may take more than a second
    has a lane to itself.
    """

    name: str
    run: Callable[[Tools], float]
    lane: str = "upkeep"


def chores(settings: Settings) -> list[Chore]:
    """The chores of a worker with these settings."""
    retention, reconciling = Retention(settings), Routine(settings)
    deliverer, at_hand = Deliverer(settings), BoardsAtHand(settings.prefix)
    routine = Chore(
        "reconcile", lambda tools: reconciling.keep(tools.conn, tools.link, tools.meter)
    )
    return [
        Chore("retention", lambda tools: retention.keep(tools.conn, tools.meter)),
        Chore("close", lambda tools: close_due(tools.conn, tools.settings, tools.stop), "close"),
        Chore("fill", lambda tools: fill_seasons(tools.conn, tools.settings, tools.stop)),
        Chore("freeze", lambda tools: keep_freezes(tools.conn, tools.stop), "freeze"),
        Chore("boards at hand", lambda tools: at_hand.keep(tools.conn, tools.link)),
        Chore("divide", lambda tools: divide_members(tools.conn, tools.stop)),
        Chore(
            "deliver",
            lambda tools: deliverer.deliver(tools.conn, tools.meter, tools.stop),
            "deliver",
        ),
        *([routine] if settings.reconcile_ms else []),
    ]


def run(
    settings: Settings,
    stop: threading.Event,
    *,
    meter: Meter | None = None,
    of: Sequence[Chore] | None = None,
) -> None:
    """Do the chores until `stop` is set; a failure is told, and the chore tried again later.

    Args:
        settings: with both URLs.
        stop: set from another thread; looked at after each piece.
        meter: told what is done; None: nobody is.
        of: other chores than those of the settings.
    """
    lanes: dict[str, list[Chore]] = {}
    for chore in chores(settings) if of is None else of:
        lanes.setdefault(chore.lane, []).append(chore)
    if not lanes:
        stop.wait()
        return
    failures: list[Exception] = []
    working: dict[str, Connection] = {}

    def keep(lane: str) -> None:
        try:
            _keep_lane(lane, lanes[lane], settings, stop, meter=meter or Meter(), working=working)
        except Exception as exc:  # noqa: BLE001 - raised again below
            failures.append(exc)
            stop.set()  # a worker without one of its lanes is none

    first, *others = lanes
    threads = [
        threading.Thread(target=keep, args=(lane,), name=f"truerank {lane}") for lane in others
    ]
    for thread in threads:
        thread.start()
    keep(first)
    for thread, lane in zip(threads, others, strict=True):
        thread.join(_PATIENCE_S)
        while thread.is_alive():  # in a statement that may take minutes, and may be repeated
            _cancel(working.get(lane))
            thread.join(_PATIENCE_S)
    if failures:
        raise failures[0]


def _cancel(conn: Connection | None) -> None:
    if conn is not None and not conn.closed:
        with suppress(psycopg.Error):  # it has just ended
            conn.cancel_safe(timeout=_PATIENCE_S)


def _keep_lane(
    lane: str,
    of: Sequence[Chore],
    settings: Settings,
    stop: threading.Event,
    *,
    meter: Meter,
    working: dict[str, Connection],
) -> None:
    assert settings.database_url is not None, "the caller resolves it"
    assert settings.redis_url is not None, "the caller resolves it"
    due = dict.fromkeys(of, 0.0)
    backoffs = {chore: Backoff() for chore in due}
    away = Backoff()
    link = Link(
        settings.redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=1, meter=meter
    )
    try:
        while not stop.is_set():
            try:
                with worker.connect(
                    settings.database_url, settings.database_timeout_ms, name=f"truerank {lane}"
                ) as conn:
                    working[lane] = conn
                    tools = Tools(settings, conn, link, meter, stop)
                    while not stop.is_set():
                        _do_what_is_due(tools, due, backoffs)
                        away.succeeded()
                        stop.wait(max(0.0, min(_WAIT_S_MAX, min(due.values()) - time.monotonic())))
            except _AWAY as exc:
                if stop.is_set():
                    return
                meter.failed("upkeep", DatabaseUnavailable.code)
                pause_s = away.failed()
                _log().warning("interrupted", error=str(exc)[:300], retry_s=round(pause_s, 3))
                stop.wait(pause_s)
    finally:
        link.close()


def _do_what_is_due(tools: Tools, due: dict[Chore, float], backoffs: dict[Chore, Backoff]) -> None:
    for chore, at in due.items():
        if tools.stop.is_set():
            return
        if time.monotonic() < at:
            continue
        try:
            pause_s = chore.run(tools)
            backoffs[chore].succeeded()
        except DatabaseUnavailable:
            raise
        except TruerankError as exc:
            pause_s = backoffs[chore].failed()
            tools.meter.failed("upkeep", getattr(exc, "reason", exc.code))
            _log().warning(
                "chore_failed", chore=chore.name, error=str(exc)[:300], retry_s=round(pause_s, 3)
            )
        due[chore] = time.monotonic() + pause_s


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.upkeep")
    return log
