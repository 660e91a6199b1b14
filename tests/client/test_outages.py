"""One store away: the other answers. Both away: an error that says so."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec
import psycopg
import pytest
from psycopg import sql

import truerank
from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, wait_until
from truerank import aio
from truerank.errors import BoardUnknown, DatabaseUnavailable, ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import Source

SCORES = {"ann": "3", "bob": "2"}


@contextmanager
def postgresql_away(idle: Pipeline) -> Iterator[None]:
    """The server refuses every connection to the database, as one that is down does."""
    settings = idle.settings
    assert settings.database_url is not None
    name = idle.conn.info.dbname
    other = settings.database_url.replace(f"/{name}?", "/truerank?")
    refuse = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name))
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(name))
    end = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"""
    idle.conn.close()
    with psycopg.connect(other, autocommit=True) as conn:
        conn.execute(refuse)
        conn.execute(end, (name,))
        try:
            yield
        finally:
            conn.execute(allow)


@pytest.fixture
def redis_of_its_own(
    idle: Pipeline, start_redis: StartRedis
) -> Iterator[tuple[truerank.Truerank, aio.Truerank, Callable[[], None]]]:
    """Clients of a projected board whose Redis can be stopped."""
    url, process = start_redis()
    settings = msgspec.structs.replace(idle.settings, redis_url=url)

    def stop() -> None:
        process.terminate()
        process.wait()

    with ExitStack() as stack:
        client = stack.enter_context(truerank.Truerank(settings))
        with running_worker(settings):
            receipts = idle.submit("b", {"ann": 3, "bob": 2})
            assert receipts[-1].token is not None
            client.wait_visible(receipts[-1].token, ["b"])
        yield client, aio.Truerank(settings), stop


def scores(page: truerank.Page) -> dict[str, str]:
    return {entry.member: entry.score for entry in page.entries}


async def test_without_redis_the_database_answers(
    redis_of_its_own: tuple[truerank.Truerank, aio.Truerank, Callable[[], None]],
) -> None:
    client, async_client, stop = redis_of_its_own
    async with async_client:
        for page in (client.top("b"), await async_client.top("b")):
            assert (scores(page), page.freshness.source) == (SCORES, Source.PROJECTION)

        stop()

        for page in (client.top("b"), await async_client.top("b")):
            assert (scores(page), page.freshness.source) == (SCORES, Source.DATABASE)
        with pytest.raises(ProjectionUnavailable):
            client.top("b", source="projection")
        with pytest.raises(ProjectionUnavailable):
            await async_client.top("b", source="projection")
        with pytest.raises(BoardUnknown):
            client.top("nothing")
        status = client.status()
        assert status.groups_live == 0
        assert status.projection not in {"whole", "incomplete"}


async def test_without_postgresql_the_projection_answers_what_was_asked_before(
    idle: Pipeline,
) -> None:
    settings = idle.settings
    with ExitStack() as stack:
        client = stack.enter_context(truerank.Truerank(settings))
        with running_worker(settings):
            receipts = idle.submit("b", {"ann": 3, "bob": 2})
            assert receipts[-1].token is not None
            client.wait_visible(receipts[-1].token, ["b"])
        async with aio.Truerank(settings) as async_client:
            assert (await async_client.top("b")).total == client.top("b").total == 2

            stack.enter_context(postgresql_away(idle))

            for page in (client.top("b"), await async_client.top("b")):
                assert (scores(page), page.freshness.source) == (SCORES, Source.PROJECTION)
            began = time.monotonic()
            assert [client.top("b").total for _ in range(50)] == [2] * 50
            assert time.monotonic() - began < 5, "not every read waits for PostgreSQL"
            with pytest.raises(DatabaseUnavailable):
                client.top("b", source="database")
            with pytest.raises(DatabaseUnavailable):
                client.top("never asked before")
            with pytest.raises(DatabaseUnavailable):
                client.submit_score("b", event_id="e", member="ann", value=1)


def test_without_both_the_answer_is_an_error(
    idle: Pipeline,
    redis_of_its_own: tuple[truerank.Truerank, aio.Truerank, Callable[[], None]],
) -> None:
    client, _, stop = redis_of_its_own
    assert client.top("b").total == 2

    stop()
    with postgresql_away(idle), pytest.raises(DatabaseUnavailable):
        client.top("b")


def test_when_postgresql_is_back_it_is_asked_again(idle: Pipeline) -> None:
    with truerank.Truerank(idle.settings) as client:
        assert client.top("b", source="database").total == 0
        with postgresql_away(idle), pytest.raises(DatabaseUnavailable):
            client.top("b", source="database")

        def answers() -> bool:
            try:
                return client.top("b", source="database").total == 0
            except DatabaseUnavailable:
                return False

        wait_until(answers, "an answer from PostgreSQL")
