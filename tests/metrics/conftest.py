"""Pipelines whose every step is driven, judged as if they ran by themselves."""

from collections.abc import Iterator

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline, pipeline
from truerank.settings import Settings


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Both addresses; nothing is due by time alone."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        prefix="test-" + database_url.partition("?")[0].rpartition("/")[2],
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
    )


@pytest.fixture
def single(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group with one board `b`, all-time only, and nothing running."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made


@pytest.fixture
def watcher(single: Pipeline) -> Iterator[truerank.Truerank]:
    """A client that expects a tick a second."""
    usual = msgspec.structs.replace(single.settings, heartbeat_ms=1000)
    with truerank.Truerank(usual) as client:
        yield client
