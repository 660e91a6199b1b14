"""Processes to kill, on a database and a key space of each test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartRedis
from tests.history.nursery import Nursery
from tests.history.scene import Scene, scene
from tests.projection.pipeline import pipeline
from truerank.settings import Settings


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Loaded once for all tests of this folder."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Everything happens within milliseconds, in small pieces."""
    return quick_settings(database_url, redis_url)


@pytest.fixture
def observed(settings: Settings, nursery: Nursery, tmp_path: Path) -> Iterator[Scene]:
    """A scene on the engines that all tests share."""
    with pipeline(settings, groups=2) as made, scene(made, nursery, tmp_path) as ready:
        yield ready


@pytest.fixture
def troubled(
    database_url: str, start_redis: StartRedis, nursery: Nursery, tmp_path: Path
) -> Iterator[Scene]:
    """A scene on a Redis of its own, which may lose everything."""
    url, _ = start_redis()
    with (
        pipeline(quick_settings(database_url, url), groups=2) as made,
        scene(made, nursery, tmp_path) as ready,
    ):
        yield ready


def quick_settings(database_url: str, redis_url: str) -> Settings:
    """Short leases and ticks, chunks of three standings, calls of two."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        tick_busy_ms=2,
        tick_idle_ms=5,
        heartbeat_ms=50,
        lease_ms=200,
        call_rows_max=2,
        scan_rows_max=3,
        board_cache_ms=1,
        segment_s=1,
        redis_timeout_ms=2000,
    )
