"""A database of the test's own, a client that reads from it, and plain connections."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

import truerank
from truerank.settings import Settings

Connection = psycopg.Connection[Any]


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[truerank.Truerank]:
    """A client. No worker runs: it reads from PostgreSQL, and nobody folds or holds a page."""
    settings = Settings(database_url=database_url, redis_url=redis_url, cache_max_ms=0)
    with truerank.Truerank(settings) as client:
        yield client


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[[], Connection]]:
    """A function that opens connections in autocommit."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(psycopg.connect(database_url, autocommit=True))


@pytest.fixture
def conn(connect: Callable[[], Connection]) -> Connection:
    """One connection in autocommit."""
    return connect()
