"""Connections to a database of the test's own, and a look at who waits for whom."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options

Connection = psycopg.Connection[Any]
_BLOCKED_S_MAX = 20.0
_THREADS_MAX = 8
_IS_BLOCKED = """
    SELECT bool_or(cardinality(pg_blocking_pids(pid)) > 0) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = %s"""


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[..., Connection]]:
    """A function that opens connections, in autocommit unless told otherwise."""
    opened: list[Connection] = []
    usual = {"autocommit": True, "options": "-c statement_timeout=30s", **caller_options()}

    def connect(**options: Any) -> Connection:
        name = f"test {len(opened)}"  # by which another session finds it, through a pooler as well
        conn = psycopg.connect(database_url, **{**usual, "application_name": name, **options})
        opened.append(conn)
        return conn

    yield connect
    for conn in opened:
        conn.close()


@pytest.fixture
def conn(connect: Callable[..., Connection]) -> Connection:
    """One connection in autocommit: each statement is a transaction."""
    return connect()


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[truerank.Truerank]:
    """A client. No worker runs: it reads from PostgreSQL."""
    with truerank.connect(database_url, redis_url) as client:
        yield client


@pytest.fixture
def begin() -> Iterator[Callable[..., Future[Any]]]:
    """A function that starts another one in a thread of its own and returns its future."""
    with ThreadPoolExecutor(_THREADS_MAX) as threads:
        yield threads.submit


@pytest.fixture
def until_blocked(connect: Callable[..., Connection]) -> Callable[[Connection], None]:
    """A function that returns once a connection waits for another one's lock."""
    watcher = connect()

    def wait(conn: Connection) -> None:
        name = conn.info.parameter_status("application_name")
        deadline = time.monotonic() + _BLOCKED_S_MAX
        while time.monotonic() < deadline:
            row = watcher.execute(_IS_BLOCKED, (name,)).fetchone()
            if row and row[0]:
                return
            time.sleep(0.002)
        pytest.fail("the connection waits for nobody")

    return wait
