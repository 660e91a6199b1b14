"""Pipelines that are rebuilt step by step: every step is a heartbeat, and looks for requests."""

from collections.abc import Iterator

import pytest

from tests.projection.conftest import single
from tests.projection.pipeline import Pipeline, pipeline
from truerank.settings import Settings

__all__ = ["settings", "several", "single"]


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Every step sees what was asked for; chunks of a few standings; nothing is held back."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        heartbeat_ms=1,
        lease_ms=3_600_000,
        board_cache_ms=1,
        scan_rows_max=4,
        call_rows_max=2,
        rebuild_share_percent=100,
    )


@pytest.fixture
def several(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of three groups with a board in each: `b0`, `b1`, `b2`."""
    with pipeline(settings, groups=3) as made:
        for group in range(3):
            made.client.create_board(f"b{group}", seasons=["all"])
            made.conn.execute(
                "UPDATE truerank.board SET grp = %s WHERE key = %s", (group, f"b{group}")
            )
        yield made
