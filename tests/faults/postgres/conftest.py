"""A server of PostgreSQL for these tests alone, and a pipeline on a database of it."""

from collections.abc import Iterator

import msgspec
import pytest
from psycopg import sql

from tests.faults.postgres.server import Server, new_server
from tests.faults.proxy import Proxy, redis_through
from tests.projection.pipeline import Pipeline, pipeline
from truerank.schema.migrate import migrate
from truerank.settings import Settings

TEMPLATE = "truerank_template"


@pytest.fixture(scope="session")
def own_server() -> Iterator[Server]:
    """A server that tests may end, if they start it again; it has a migrated template."""
    with new_server() as server:
        server.start()
        with server.connect() as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        migrate(server.url(TEMPLATE))
        yield server


@pytest.fixture
def server(own_server: Server) -> Server:
    """The same, and it runs, whatever the test before left."""
    own_server.start_again()
    return own_server


@pytest.fixture
def database(server: Server, numbers: Iterator[int]) -> str:
    """The name of a migrated database of this test's own."""
    name = f"test_{next(numbers)}"
    with server.connect() as conn:
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        conn.execute(copy.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
    return name


@pytest.fixture
def settings(server: Server, database: str, redis_url: str) -> Settings:
    """Both addresses; every wait for a lost server is short."""
    return Settings(
        database_url=server.url(database),
        redis_url=redis_url,
        board_cache_ms=1,
        tick_idle_ms=5,
        heartbeat_ms=200,
        lease_ms=500,
        redis_timeout_ms=1000,
        database_timeout_ms=2000,
    )


@pytest.fixture
def lone(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group with one board `b`, all-time only, and nothing running."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made


@pytest.fixture
def quiet(settings: Settings) -> Settings:
    """The same, and nothing is due by time alone."""
    return msgspec.structs.replace(settings, heartbeat_ms=3_600_000, lease_ms=3_600_000)


@pytest.fixture
def redis_wire(settings: Settings) -> Iterator[tuple[Proxy, Settings]]:
    """A proxy before Redis, and the settings that lead through it."""
    assert settings.redis_url is not None
    with redis_through(settings.redis_url) as (proxy, url):
        yield proxy, msgspec.structs.replace(settings, redis_url=url)
