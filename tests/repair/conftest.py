"""Pipelines of one group, driven step by step, to be damaged and mended."""

from collections.abc import Iterator

import pytest

from tests.projection.pipeline import Pipeline, pipeline
from truerank.settings import Settings


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
    """A pipeline of one group with one board `b`, all-time only, and nothing running."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made
