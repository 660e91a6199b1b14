"""Connections are lent: how many there are, which one is given, and when it is made anew."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
import redis
from redis.asyncio import ConnectionPool as AsyncConnectionPool
from redis.connection import ConnectionPool

from truerank.projection.alink import AsyncLink
from truerank.projection.link import Link
from truerank.projection.pools import AsyncPool, Crowded, Pool

FORKS = """
import os, sys
from truerank.projection.link import Link

link = Link(sys.argv[1], timeout_ms=5000)
before = link.command("CLIENT", "ID")
child = os.fork()
if child == 0:
    own = [link.command("CLIENT", "ID") for _ in range(2)]
    os._exit(0 if own[0] == own[1] != before else 1)
_, status = os.waitpid(child, 0)
assert status == 0, "the child spoke through its parent's connection"
assert link.command("CLIENT", "ID") == before
"""


@pytest.fixture
def link(redis_url: str) -> Iterator[Link]:
    link = Link(redis_url, timeout_ms=5000, connections_max=2)
    yield link
    link.close()


@pytest.fixture
async def async_link(redis_url: str) -> AsyncIterator[AsyncLink]:
    link = AsyncLink(redis_url, timeout_ms=5000, connections_max=2)
    yield link
    await link.close()


@pytest.fixture
def pool(redis_url: str) -> Iterator[Pool]:
    """Two connections, and the patience of a moment."""
    make = ConnectionPool.from_url(redis_url, protocol=2).make_connection
    pool = Pool(make, connections_max=2, wait_s=0.01)
    yield pool
    pool.close()


def test_one_caller_keeps_to_one_connection(link: Link) -> None:
    assert len({link.command("CLIENT", "ID") for _ in range(5)}) == 1


async def test_one_task_keeps_to_one_connection(async_link: AsyncLink) -> None:
    assert len({await async_link.command("CLIENT", "ID") for _ in range(5)}) == 1


def test_callers_at_the_same_time_have_a_connection_each_and_no_more(pool: Pool) -> None:
    first, second = pool.borrow(), pool.borrow()
    with pytest.raises(Crowded):
        pool.borrow()
    pool.give_back(second)

    assert first is not second
    assert pool.borrow() is second


async def test_tasks_at_the_same_time_share_the_connections(async_link: AsyncLink) -> None:
    ids = await asyncio.gather(*(async_link.command("CLIENT", "ID") for _ in range(10)))

    assert len(set(ids)) == 2


async def test_a_task_waits_for_a_connection_no_longer_than_it_may(redis_url: str) -> None:
    make = AsyncConnectionPool.from_url(redis_url, protocol=2).make_connection
    pool = AsyncPool(make, connections_max=1, wait_s=0.01)
    connection = await pool.borrow()
    with pytest.raises(Crowded):
        await pool.borrow()
    pool.give_back(connection)

    assert await pool.borrow() is connection
    await pool.close()


def test_a_connection_that_the_server_ended_is_made_anew(link: Link, redis_url: str) -> None:
    ended = link.command("CLIENT", "ID")
    end(redis_url, ended)

    assert link.command("CLIENT", "ID") != ended
    assert link.breaker.failures == 0


def test_a_reply_that_nobody_read_is_not_the_next_ones(pool: Pool) -> None:
    connection = pool.borrow()
    connection.send_command("ECHO", "left")
    assert connection.can_read(timeout=10)
    pool.give_back(connection)

    again = pool.borrow()

    assert again is connection
    again.send_command("ECHO", "asked")
    assert again.read_response() == b"asked"


async def test_a_reply_that_no_task_read_is_not_the_next_ones(redis_url: str) -> None:
    make = AsyncConnectionPool.from_url(redis_url, protocol=2).make_connection
    pool = AsyncPool(make, connections_max=1, wait_s=5)
    connection = await pool.borrow()
    await connection.send_command("ECHO", "left")
    async with asyncio.timeout(10):
        while not await connection.can_read():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)
    pool.give_back(connection)

    again = await pool.borrow()

    await again.send_command("ECHO", "asked")
    assert await again.read_response() == b"asked"
    await pool.close()


def test_a_process_that_was_forked_has_connections_of_its_own(redis_url: str) -> None:
    subprocess.run([sys.executable, "-c", FORKS, redis_url], check=True, timeout=60)


def test_a_server_that_cannot_be_reached_costs_no_connection() -> None:
    unreachable = ConnectionPool.from_url("redis://127.0.0.1:1", protocol=2).make_connection
    pool = Pool(unreachable, connections_max=1, wait_s=0.01)
    for _ in range(3):
        with pytest.raises(redis.ConnectionError) as refused:
            pool.borrow()
        assert not isinstance(refused.value, Crowded)


def end(redis_url: str, connection: int) -> None:
    """Have the server end one of its connections."""
    with redis.Redis.from_url(redis_url) as server:
        server.execute_command("CLIENT", "KILL", "ID", connection)
