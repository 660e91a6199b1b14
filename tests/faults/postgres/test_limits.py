"""Limits that the server sets: on connections, and on how long a transaction may last."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql

import truerank
from tests.faults.postgres.server import Server
from tests.projection.pipeline import Pipeline, differences, wait_until
from truerank import aio
from truerank.errors import DatabaseUnavailable
from truerank.gatherer import Gatherer
from truerank.local import running_worker
from truerank.model import ScoreEvent, Source
from truerank.settings import Settings
from truerank.steps import Query, Steps

CALLER = "caller"  # a role whose connections are limited, as a small server's are
PAUSE = "SELECT pg_sleep(0.3)::text"


def query(text: str) -> Steps[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = yield Query(text)
    return rows


@pytest.fixture
def few(server: Server, lone: Pipeline, database: str) -> Iterator[Settings]:
    """Settings of twenty connections per pool, for a role that may have three."""
    lone.conn.execute(f"CREATE ROLE {CALLER} LOGIN CONNECTION LIMIT 3")
    lone.conn.execute("SELECT truerank.grant_caller(%s::regrole)", (CALLER,))
    url = server.url(database).replace("truerank@", f"{CALLER}@")
    yield msgspec.structs.replace(
        lone.settings, database_url=url, pool_max=20, database_timeout_ms=4000
    )
    with server.connect(database) as conn:
        conn.execute(f"DROP OWNED BY {CALLER}")
        conn.execute(f"DROP ROLE {CALLER}")


def connections(lone: Pipeline) -> int:
    ((number,),) = lone.conn.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = %s", (CALLER,)
    ).fetchall()
    return int(number)


def test_a_client_that_may_have_fewer_connections_than_it_asks_for_works_with_these(
    lone: Pipeline, few: Settings
) -> None:
    few = msgspec.structs.replace(few, database_timeout_ms=20_000)
    with truerank.Truerank(few) as client, ThreadPoolExecutor(12) as threads:
        asked = [threads.submit(client.run, query(PAUSE)) for _ in range(12)]
        wait_until(lambda: connections(lone) == 3, "as many connections as there may be")

        assert [len(answer.result()) for answer in asked] == [1] * 12
        for number in range(20):
            client.submit_score("b", event_id=f"e{number}", member="ann", value=1)


async def test_of_two_services_that_get_no_connection_each_goes_on_when_there_are_some(
    lone: Pipeline, few: Settings, server: Server
) -> None:
    """Meanwhile they say why, in little time, and don't end."""
    assert few.database_url is not None
    event = ScoreEvent(event_id="e", member="ann", value=1)
    with ExitStack() as taken:
        for _ in range(3):
            taken.enter_context(psycopg.connect(few.database_url))
        async with Gatherer(few) as one, aio.Truerank(few) as other:
            began = time.monotonic()
            with pytest.raises(DatabaseUnavailable, match="too many connections"):
                await one.submit_score("b", event)
            with pytest.raises(DatabaseUnavailable, match="too many connections"):
                await other.submit_scores("b", [event])
            assert time.monotonic() - began < 20
            with server.connect() as operator:
                assert operator.execute("SELECT 1").fetchone() == (1,)

            taken.close()

            async def written() -> bool:
                try:
                    await one.submit_score("b", event)
                    await other.submit_scores("b", [event])
                except DatabaseUnavailable:
                    return False
                return True

            deadline = time.monotonic() + 30
            while not await written():
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
    assert lone.client.run(query("SELECT value::text FROM truerank.event")) == [("1",)]


def test_a_worker_that_gets_no_connection_waits_for_one(
    server: Server, lone: Pipeline, database: str
) -> None:
    lone.submit("b", {"ann": 1})
    name = sql.Identifier(database)
    with running_worker(lone.settings):
        wait_until(lambda: not differences(lone), "the first score")
        with server.connect() as operator:
            # Superusers are let in whatever the limit is: nobody else is let in at all.
            operator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
            ended = lone.conn.execute(
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
                " WHERE application_name = 'truerank worker' AND datname = current_database()"
            ).fetchone()
            lone.submit("b", {"ann": 1})
            operator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
        wait_until(lambda: not differences(lone), "what came meanwhile")
    assert ended == (1,)


def test_a_limit_on_transactions_ends_a_statement_as_if_the_server_were_away(
    lone: Pipeline,
) -> None:
    supported = lone.conn.execute(
        "SELECT FROM pg_settings WHERE name = 'transaction_timeout'"
    ).fetchone()
    if supported is None:
        pytest.skip("this PostgreSQL has no transaction_timeout")
    name = sql.Identifier(lone.conn.info.dbname)
    lone.conn.execute(sql.SQL("ALTER DATABASE {} SET transaction_timeout = 150").format(name))
    with truerank.Truerank(lone.settings) as client:
        with pytest.raises(DatabaseUnavailable, match="transaction timeout"):
            client.run(query(PAUSE))

        assert client.top("b", source=Source.DATABASE).total == 0
