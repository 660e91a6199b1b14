"""Both clients beside a worker in this process, on a database of few groups."""

from collections.abc import Iterator

import pytest

from tests.projection.pipeline import Pipeline, pipeline
from truerank.local import running_worker
from truerank.settings import Settings


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Both addresses; every wait for a lost server is short."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        board_cache_ms=1,
        tick_idle_ms=5,
        redis_timeout_ms=500,
        database_timeout_ms=500,
    )


@pytest.fixture
def idle(settings: Settings) -> Iterator[Pipeline]:
    """No worker runs; board `b` keeps all time and months."""
    with pipeline(settings, groups=2) as made:
        made.client.create_board("b", seasons=["all", "month"])
        yield made


@pytest.fixture
def live(idle: Pipeline) -> Iterator[Pipeline]:
    """As `idle`, with a worker, and three scores that are shown."""
    with running_worker(idle.settings):
        receipts = idle.submit("b", {"ann": 3, "bob": 2, "cid": 1})
        assert receipts[-1].token is not None
        idle.client.wait_visible(receipts[-1].token, ["b"])
        yield idle
