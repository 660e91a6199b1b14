"""Pipelines with short deadlines before Redis servers that a test may harm."""

import pytest

from truerank.settings import Settings


@pytest.fixture
def settings(database_url: str) -> Settings:
    """No address of Redis yet; every wait for a lost server is short."""
    return Settings(
        database_url=database_url,
        board_cache_ms=50,
        tick_idle_ms=5,
        tick_busy_ms=5,
        heartbeat_ms=100,
        redis_timeout_ms=300,
        fallback_max=1000,
    )
