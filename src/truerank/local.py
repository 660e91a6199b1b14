"""Truerank with nothing set up: embedded engines, a migrated database, a worker in a thread."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truerank.client import Truerank
from truerank.embedded import start_engines
from truerank.errors import ProjectionUnavailable
from truerank.projection import worker
from truerank.schema.migrate import migrate
from truerank.settings import Settings, load

_READY_S_MAX = 30.0


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
        with start_engines(folder, durable=data is not None) as engines:
            migrate(engines.database_url)
            settings = load(database_url=engines.database_url, redis_url=engines.redis_url)
            with running_worker(settings), Truerank(settings) as client:
                yield client


@contextmanager
def running_worker(settings: Settings) -> Iterator[None]:
    """A worker in a thread of this process; yields once it projects.

    Raises:
        ProjectionUnavailable: it did not begin to project in time.
    """
    stop, ready = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=worker.run, args=(settings, stop), kwargs={"ready": ready.set}, name="truerank"
    )
    thread.start()
    try:
        if not ready.wait(_READY_S_MAX):
            raise ProjectionUnavailable("the worker did not start to project")
        yield
    finally:
        stop.set()
        thread.join()
