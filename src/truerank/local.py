"""Truerank with nothing set up: embedded engines, a migrated database, a worker in a thread."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from msgspec.structs import replace

from truerank import upkeep
from truerank.client import Truerank
from truerank.embedded import Engines, start_engines
from truerank.errors import ProjectionUnavailable
from truerank.projection import worker
from truerank.schema.migrate import migrate
from truerank.settings import Settings, load

_READY_S_MAX = 30.0
_FORGET_WORKERS = "DELETE FROM truerank.worker"
_FREE_LEASES = "UPDATE truerank.lease SET worker = NULL, expires_at = '-infinity'"
_WORKERS = "SELECT workers FROM truerank.status()"


@contextmanager
def sandbox(data: Path | None = None) -> Iterator[Truerank]:
    """A whole Truerank for a test or a notebook, gone at the end of the block.

    PostgreSQL and Valkey start from wheels, the schema is migrated, a worker projects.

    Args:
        data: keep the data in this folder; None: a temporary one.

    Raises:
        EngineError: an engine could not be started.
    """
    with tempfile.TemporaryDirectory(prefix="truerank-") as temporary:
        folder = data or Path(temporary) / "data"
        with (
            start_engines(folder, durable=data is not None) as engines,
            projecting(prepared(engines, load()), engines) as settings,
            Truerank(settings) as client,
        ):
            yield client


def prepared(engines: Engines, settings: Settings) -> Settings:
    """Migrate the database of embedded engines, and give the settings that lead to them."""
    migrate(engines.database_url)
    if not engines.attached:
        # Workers end with their engines. Those that were killed would keep their leases for
        # seconds, and count when the groups are shared out.
        with psycopg.connect(engines.database_url, autocommit=True) as conn:
            conn.execute(_FORGET_WORKERS)
            conn.execute(_FREE_LEASES)
    return replace(settings, database_url=engines.database_url, redis_url=engines.redis_url)


@contextmanager
def projecting(settings: Settings, engines: Engines) -> Iterator[Settings]:
    """See to it that a worker projects in the block: one that works already, or one of our own.

    Raises:
        ProjectionUnavailable: our own did not begin to project in time.
    """
    if engines.attached and _workers(engines):
        yield settings
        return
    with running_worker(settings):
        yield settings


@contextmanager
def running_worker(settings: Settings) -> Iterator[None]:
    """A worker in a thread of this process, its chores in another; yields once it projects.

    Raises:
        ProjectionUnavailable: it did not begin to project in time.
        SchemaMismatch, ProjectionUnsafe: it refuses the database or the Redis server.
    """
    stop, ready = threading.Event(), threading.Event()
    failures: list[Exception] = []

    def guarded(run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as exc:  # noqa: BLE001 - raised again below
            failures.append(exc)
            ready.set()

    threads = [
        threading.Thread(target=guarded, args=(run,), name=f"truerank {name}")
        for name, run in (
            ("worker", partial(worker.run, settings, stop, ready=ready.set)),
            # It lives for one command or one test: nothing for a routine of many minutes.
            ("upkeep", partial(upkeep.run, replace(settings, reconcile_ms=0), stop)),
        )
    ]
    for thread in threads:
        thread.start()
    try:
        if not ready.wait(_READY_S_MAX):
            raise ProjectionUnavailable("the worker did not start to project")
        if not failures:
            yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _workers(engines: Engines) -> int:
    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        row = conn.execute(_WORKERS).fetchone()
    return int(row[0]) if row else 0
