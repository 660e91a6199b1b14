"""Project until told to stop, through every failure of either side."""

import threading
import time
from collections.abc import Callable
from functools import cache

import psycopg
import structlog

from truerank.errors import (
    DatabaseUnavailable,
    ProjectionUnavailable,
    ProjectionUnsafe,
    SourceSuperseded,
)
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import Connection
from truerank.projection.link import Link
from truerank.projection.projector import Projector
from truerank.projection.trouble import Backoff
from truerank.schema import migrate
from truerank.sessions import AWAY, LIMIT_SESSION, Limits, alive_only, primary_only
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_BUSY_S = 1.0  # after the last rows: who writes now and then is shown as soon as who writes a lot
# What passes by itself: a server that restarts, for one.
_INTERRUPTIONS: tuple[type[Exception], ...] = (
    ProjectionUnavailable,
    DatabaseUnavailable,
    SourceSuperseded,
    *AWAY,
)


def run(
    settings: Settings,
    stop: threading.Event,
    *,
    ready: Callable[[], None] = lambda: None,
    meter: Meter | None = None,
) -> None:
    """Project until `stop` is set, through every failure of either side; then release all leases.

    Args:
        settings: with both URLs.
        stop: set from another thread or a signal handler; looked at after each step.
        ready: called once, when every group that this worker leases has a live copy.
        meter: told what the worker does; None: nobody is.

    Raises:
        ProjectionUnsafe: the Redis server may evict keys. Where it comes to do so later, nothing is
            projected until that is mended.
        SchemaMismatch: the database isn't at the schema of this release.
    """
    assert settings.database_url is not None, "the caller resolves it"
    assert settings.redis_url is not None, "the caller resolves it"
    link = Link(
        settings.redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=2, meter=meter
    )
    worker = Worker.new(settings.lease_ms)  # kept through failures, and its leases with it
    backoff = Backoff()
    ready = cache(ready)  # the first time only
    safe = False
    try:
        while not stop.is_set():
            try:
                with connect(settings.database_url, settings.database_timeout_ms) as conn:
                    if not safe:
                        link.check_policy()
                        safe = True
                    projector = Projector(conn, link, settings, worker)
                    _keep_up(projector, link, settings, stop=stop, backoff=backoff, ready=ready)
                    projector.drain(settings.drain_ms / 1000)
            except _INTERRUPTIONS as exc:
                _pause(exc, link, stop, backoff)
            except ProjectionUnsafe as exc:
                if not safe:
                    raise
                _pause(exc, link, stop, backoff)
    finally:
        link.close()


def _keep_up(
    projector: Projector,
    link: Link,
    settings: Settings,
    *,
    stop: threading.Event,
    backoff: Backoff,
    ready: Callable[[], None],
) -> None:
    """Step until told to stop, through every failure of Redis."""
    busy_until = 0.0
    while not stop.is_set():
        began = time.monotonic()
        try:
            if projector.step():
                busy_until = began + _BUSY_S
        except (ProjectionUnavailable, ProjectionUnsafe) as exc:
            projector.interrupt()
            _pause(exc, link, stop, backoff)
            continue
        backoff.succeeded()
        if projector.whole:
            ready()
        wait_ms = _wait_ms(settings, projector, busy=began < busy_until)
        stop.wait(max(0.0, wait_ms / 1000 - (time.monotonic() - began)))


def _pause(exc: Exception, link: Link, stop: threading.Event, backoff: Backoff) -> None:
    wait_s = max(backoff.failed(), link.breaker.retry_s)
    link.meter.failed("worker", getattr(exc, "reason", DatabaseUnavailable.code))
    # Somebody has to see to these two: they don't pass by themselves.
    alarm = isinstance(exc, SourceSuperseded | ProjectionUnsafe)
    log = _log().error if alarm else _log().warning
    log("interrupted", error=str(exc)[:300], retry_s=round(wait_s, 3))
    stop.wait(wait_s)


def connect(
    database_url: str, timeout_ms: int = 10_000, *, name: str = "truerank worker"
) -> Connection:
    """A connection for a worker: autocommit, with a deadline for statements, the schema checked.

    Args:
        database_url: of PostgreSQL.
        timeout_ms: for each statement.
        name: how the connection is called in pg_stat_activity.

    Raises:
        DatabaseUnavailable: no connection.
        SchemaMismatch: the database isn't at the schema of this release.
    """
    try:
        conn = psycopg.connect(
            database_url,
            autocommit=True,
            application_name=name,
            connect_timeout=max(2, timeout_ms // 1000),
            **alive_only(database_url),
            **primary_only(database_url),
        )
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"no connection to PostgreSQL: {exc}") from exc
    try:
        limits = Limits(statement_ms=timeout_ms).of_session(conn)
        if conn.execute(LIMIT_SESSION, limits).fetchone() is None:
            conn.prepare_threshold = None
            _log().warning("pooled", database="connect workers directly: no deadlines here")
        migrate.check(conn)
    except BaseException:
        conn.close()
        raise
    return conn


def _wait_ms(settings: Settings, projector: Projector, *, busy: bool) -> int:
    tick_ms = settings.tick_busy_ms if busy else settings.tick_idle_ms
    pause_s = projector.pause_s
    return tick_ms if pause_s is None else min(tick_ms, round(pause_s * 1000))


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
