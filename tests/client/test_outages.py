"""One store away: the other answers. Both away: an error that says so."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

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
from truerank.model import ScoreEvent, Source
from truerank.steps import Query, Steps
from truerank.writing import Writer

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


def query(sql: str) -> Steps[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = yield Query(sql)
    return rows


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


def end_idle_connections(idle: Pipeline, application: str = "truerank") -> int:
    """End what lies in the pools of clients, as a restart of the server does; how many it was."""
    rows = idle.conn.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = %s AND state = 'idle'",
        (application,),
    ).fetchall()
    assert all(ended for (ended,) in rows)
    return len(rows)


@pytest.mark.direct
def test_connections_that_the_server_ended_fail_no_request(idle: Pipeline) -> None:
    with truerank.Truerank(idle.settings) as client, ThreadPoolExecutor(8) as threads:
        asleep = [threads.submit(client.run, query("SELECT pg_sleep(0.2)::text")) for _ in range(8)]
        assert [len(sleeper.result()) for sleeper in asleep] == [1] * 8

        assert end_idle_connections(idle) >= 8

        for number in range(20):
            client.submit_score("b", event_id=f"e{number}", member="ann", value=1)


@pytest.mark.direct
async def test_connections_that_the_server_ended_fail_no_request_of_asyncio(
    idle: Pipeline,
) -> None:
    async with aio.Truerank(idle.settings) as client:
        asleep = [client.run(query("SELECT pg_sleep(0.2)::text")) for _ in range(8)]
        assert [len(rows) for rows in await asyncio.gather(*asleep)] == [1] * 8

        assert end_idle_connections(idle) >= 8

        for number in range(20):
            await client.submit_score("b", event_id=f"e{number}", member="ann", value=1)


@pytest.mark.direct
async def test_connections_that_the_server_ended_fail_no_write_of_the_service(
    idle: Pipeline,
) -> None:
    writer = Writer(idle.settings)
    await writer.open()
    try:
        events = [ScoreEvent(event_id=f"e{n}", member="ann", value=1) for n in range(9)]
        await asyncio.gather(*(writer.submit("b", [event], None) for event in events))

        assert end_idle_connections(idle, "truerank writer") >= 1

        for event in events:
            (receipt,) = await writer.submit("b", [event], None)
            assert receipt.outcome == "duplicate"
    finally:
        await writer.close()


def test_a_silent_redis_costs_few_reads_their_deadline(
    idle: Pipeline, start_redis: StartRedis
) -> None:
    url, process = start_redis()
    settings = msgspec.structs.replace(
        idle.settings, redis_url=url, redis_timeout_ms=400, board_cache_ms=60_000
    )
    with truerank.Truerank(settings) as client:
        with running_worker(settings):
            receipts = idle.submit("b", {"ann": 3, "bob": 2})
            assert receipts[-1].token is not None
            client.wait_visible(receipts[-1].token, ["b"])
        assert client.top("b").freshness.source is Source.PROJECTION
        process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            pages = [client.top("b") for _ in range(20)]
            took_s = time.monotonic() - began

            assert {page.freshness.source for page in pages} == {Source.DATABASE}
            assert [scores(page) for page in pages] == [SCORES] * 20
            assert took_s < 20 * 0.4 / 2, "not every read waits for Redis"
            with pytest.raises(ProjectionUnavailable):
                client.top("b", source="projection")
        finally:
            process.send_signal(signal.SIGCONT)

        wait_until(
            lambda: client.top("b").freshness.source is Source.PROJECTION, "an answer from Redis"
        )


def test_a_group_without_a_copy_takes_no_other_from_redis(live: Pipeline) -> None:
    other = next(
        key
        for key in (f"other {n}" for n in range(100))
        if live.client.create_board(key)
        and live.client.board(key).group != live.client.board("b").group
    )
    live.redis.set(live.keys(live.client.board(other).group).pointer, "0" * 32)

    with truerank.Truerank(live.settings) as client:
        assert client.top(other).freshness.source is Source.DATABASE
        assert client.top("b").freshness.source is Source.PROJECTION


def test_a_copy_that_can_not_be_decoded_is_answered_for_by_postgresql(idle: Pipeline) -> None:
    settings = idle.settings
    with running_worker(settings):
        receipts = idle.submit("b", {"ann": 3, "bob": 2})
        assert receipts[-1].token is not None
        idle.client.wait_visible(receipts[-1].token, ["b"])
    group = idle.client.board("b").group
    generation = idle.generation(group)
    assert generation is not None
    meta = idle.keys(group).generation(generation).meta
    good = {name: idle.redis.hget(meta, name) for name in ("epoch", "tick")}

    for name, value in good.items():
        idle.redis.hset(meta, name, b"\xff")
        page = idle.client.top("b")
        assert (scores(page), page.freshness.source) == (SCORES, Source.DATABASE)
        with pytest.raises(ProjectionUnavailable):
            idle.client.top("b", source="projection")
        idle.redis.hset(meta, name, value)
        assert idle.client.top("b").freshness.source is Source.PROJECTION

    idle.redis.set(idle.keys(group).pointer, b"\xff")
    with truerank.Truerank(settings) as fresh:
        for client in (fresh, idle.client):
            page = client.top("b")
            assert (scores(page), page.freshness.source) == (SCORES, Source.DATABASE)


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
