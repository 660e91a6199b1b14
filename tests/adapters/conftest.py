"""A database for the suite, each library in turn, and somebody who looks on."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import django  # type: ignore[import-untyped]  # Django ships no types
import psycopg
import pytest
from django.conf import settings  # type: ignore[import-untyped]  # as above
from psycopg.conninfo import conninfo_to_dict

from tests.adapters.libraries import LIBRARIES, Library, psycopg_level
from truerank.command.board import create_board
from truerank.embedded import Engines
from truerank.model import BoardSpec
from truerank.steps import Query

_DATABASE = "adapters"
_CALLER = "adapters_caller"
_BLOCKED_S_MAX = 10.0
_ISOLATIONS = ("read committed", "repeatable read", "serializable")

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="session")
def owner_url(engines: Engines, template: str) -> str:
    """A database for all tests of the adapters: each has a board of its own."""
    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {_DATABASE} TEMPLATE {template}")
        conn.execute(f"CREATE ROLE {_CALLER} LOGIN")
    url = engines.database_url.replace("/truerank?", f"/{_DATABASE}?")
    with psycopg.connect(url) as conn:
        # The owner's first schema is the one of its name: Truerank's.
        conn.execute("CREATE TABLE public.purchase (board text NOT NULL, id text PRIMARY KEY)")
        conn.execute(f"GRANT INSERT ON public.purchase TO {_CALLER}")
        conn.execute("SELECT truerank.grant_caller(%s::regrole)", (_CALLER,))
    return url


@pytest.fixture(scope="session")
def caller_url(owner_url: str) -> str:
    """The same, as a role that may do what callers do and nothing else."""
    url = owner_url.replace("truerank@", f"{_CALLER}@")
    _configure_django(url)
    return url


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest, caller_url: str) -> Library:
    """Each library in turn."""
    return LIBRARIES[request.param](caller_url)


@pytest.fixture(params=_ISOLATIONS)
def isolation(request: pytest.FixtureRequest) -> str:
    """Each isolation level in turn."""
    level: str = request.param
    return level


@pytest.fixture
def observer(owner_url: str) -> Iterator[Connection]:
    """A connection beside the caller's, which sees what is committed."""
    with psycopg.connect(owner_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
def make_board(observer: Connection, numbers: Iterator[int]) -> Callable[..., str]:
    """A function that makes a board of these settings, under a key of its own."""

    def make(**options: Any) -> str:
        key = f"board {next(numbers)}"
        steps = create_board(BoardSpec(key=key, **{"seasons": ("all",), **options}))
        query = next(steps)
        assert isinstance(query, Query)
        with pytest.raises(StopIteration):
            steps.send(observer.execute(query.sql, query.params).fetchall())
        return key

    return make


@pytest.fixture
def board(make_board: Callable[..., str]) -> str:
    """A board that sums, up to 1000 for an event, with one season."""
    return make_board(value_max=1000)


@pytest.fixture
def until_blocked(observer: Connection) -> Callable[[], Awaitable[None]]:
    """A function that returns once somebody waits for another one's lock."""

    async def wait() -> None:
        deadline = time.monotonic() + _BLOCKED_S_MAX
        while time.monotonic() < deadline:
            if observer.execute(_WAITING).rowcount:
                return
            await asyncio.sleep(0.005)
        pytest.fail("nobody waits")

    return wait


_WAITING = """
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'"""


def _configure_django(url: str) -> None:
    """Settings, with one alias for each isolation level."""
    where = conninfo_to_dict(url)
    databases = {
        isolation: {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": where["dbname"],
            "USER": where["user"],
            "HOST": where["host"],
            "PORT": where["port"],
            "OPTIONS": {"isolation_level": psycopg_level(isolation)},
        }
        for isolation in _ISOLATIONS
    }
    settings.configure(DATABASES={"default": databases["read committed"], **databases})
    django.setup()
