"""A pipeline whose worker moves only when a test says so."""

from collections.abc import Iterator

import httpx
import msgspec
import pytest

from tests.conformance.conftest import world
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.projection.pipeline import Pipeline, pipeline
from tests.reads.command_line import CommandLine
from tests.reads.paths import Paths
from truerank.projection.projector import Projector
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


@pytest.fixture(scope="session")
def command_line() -> CommandLine:
    """The commands, on whichever client."""
    return CommandLine()


@pytest.fixture
def paths(database_url: str, redis_url: str, command_line: CommandLine) -> Iterator[Paths]:
    """Every way to read an empty installation; its worker moves only when told to."""
    with world(database_url, redis_url) as made:
        # Steps of the worker and questions follow each other too fast for hints.
        settings = msgspec.structs.replace(
            made.pipeline.settings, live_checks_percent=0, cache_max_ms=0
        )
        with (
            serving(settings) as url,
            httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as http,
        ):
            yield Paths(made, http, command_line)
