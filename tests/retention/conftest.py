"""A client without a worker, and events of some days ago."""

from collections.abc import Iterator

import psycopg
import pytest

import truerank
from tests.projection.pipeline import Pipeline, pipeline
from truerank.settings import Settings

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[truerank.Truerank]:
    """A client. No worker runs: it reads from PostgreSQL."""
    with truerank.connect(database_url, redis_url) as client:
        yield client


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    """One connection in autocommit: each statement is a transaction."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Both addresses; nothing is due by time alone, and nothing is remembered for long."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
    )


@pytest.fixture
def single(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group, and nothing running."""
    with pipeline(settings, groups=1) as made:
        yield made
