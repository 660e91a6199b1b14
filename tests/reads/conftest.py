"""A pipeline whose worker moves only when a test says so."""

from collections.abc import Iterator

import pytest

from tests.projection.pipeline import Pipeline, pipeline
from truerank.projection.worker import Projector
from truerank.settings import Settings


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Both addresses; what is remembered is forgotten at once."""
    return Settings(database_url=database_url, redis_url=redis_url, board_cache_ms=1)


@pytest.fixture
def idle(settings: Settings) -> Iterator[Pipeline]:
    """Board `b` with one score, ann's 10, which is shown."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", {"ann": 10})
        yield made


@pytest.fixture
def projector(idle: Pipeline) -> Projector:
    """Has brought the projection up to date, and stands still."""
    projector = idle.projector()
    idle.settle(projector)
    return projector


@pytest.fixture
def stopped(idle: Pipeline, projector: Projector) -> Pipeline:
    """As `idle`, after the worker brought the projection up to date and stood still."""
    del projector
    return idle
