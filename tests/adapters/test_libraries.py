"""What only one library has."""

import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # asyncpg ships no types
import psycopg
import pytest
from django.db import connections  # type: ignore[import-untyped]  # Django ships no types
from django.db.transaction import (  # type: ignore[import-untyped]  # as above
    TransactionManagementError,
    atomic,
)
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker

import truerank.adapters.asyncpg
import truerank.adapters.django
import truerank.adapters.sqlalchemy
from tests.adapters.libraries import with_driver
from truerank.model import Outcome, ScoreEvent

Connection = psycopg.Connection[Any]
DEFAULT = "default"

EVENT = ScoreEvent(event_id="e1", member="ann", value=5, metadata={"a": [1]})


@pytest.fixture
async def pool(caller_url: str) -> AsyncIterator[Any]:
    """A pool of asyncpg connections that turn JSON into objects, as many programs set them up."""

    async def set_codecs(conn: Any) -> None:
        for name in ("json", "jsonb"):
            await conn.set_type_codec(
                name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads
            )

    async with asyncpg.create_pool(caller_url, min_size=1, max_size=1, init=set_codecs) as pool:
        yield pool


def metadata(observer: Connection, board: str) -> list[Any]:
    rows = observer.execute(
        """SELECT e.metadata FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id
           WHERE b.key = %s""",
        (board,),
    )
    return [value for (value,) in rows]


async def test_asyncpg_takes_a_connection_of_a_pool_whatever_its_json_codec(
    pool: Any, board: str, observer: Connection
) -> None:
    submit_score = truerank.adapters.asyncpg.submit_score

    async with pool.acquire() as conn, conn.transaction():
        await submit_score(conn, board, EVENT)
        before = metadata(observer, board)

    assert before == []
    assert metadata(observer, board) == [{"a": [1]}]


async def test_asyncpg_commits_the_score_by_itself_where_no_transaction_is_open(
    pool: Any, board: str, observer: Connection
) -> None:
    async with pool.acquire() as conn:
        receipt = await truerank.adapters.asyncpg.submit_score(conn, board, EVENT)
        seen = metadata(observer, board)

    assert receipt.outcome is Outcome.APPLIED
    assert seen == [{"a": [1]}]


def test_sqlalchemy_takes_a_scoped_session(
    caller_url: str, board: str, observer: Connection
) -> None:
    engine = create_engine(with_driver(caller_url, "psycopg"))
    session = scoped_session(sessionmaker(engine))

    truerank.adapters.sqlalchemy.submit_score(session, board, EVENT)
    before = metadata(observer, board)
    session.commit()
    session.remove()
    engine.dispose()

    assert before == []
    assert metadata(observer, board) == [{"a": [1]}]


async def test_sqlalchemy_takes_an_async_scoped_session(
    caller_url: str, board: str, observer: Connection
) -> None:
    engine = create_async_engine(with_driver(caller_url, "asyncpg"))
    session = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: None)

    await truerank.adapters.sqlalchemy.submit_score_async(session, board, EVENT)
    before = metadata(observer, board)
    await session.commit()
    await session.remove()
    await engine.dispose()

    assert before == []
    assert metadata(observer, board) == [{"a": [1]}]


@pytest.mark.usefixtures("caller_url")
def test_django_refuses_to_submit_outside_a_transaction(board: str, observer: Connection) -> None:
    try:
        with pytest.raises(TransactionManagementError, match="atomic"):
            truerank.adapters.django.submit_score(board, EVENT)
    finally:
        connections.close_all()

    assert metadata(observer, board) == []


@pytest.mark.usefixtures("caller_url")
def test_django_submits_to_the_default_database_and_in_transactions_made_by_hand(
    board: str, observer: Connection
) -> None:
    submit_score = truerank.adapters.django.submit_score
    by_hand = ScoreEvent(event_id="e2", member="bob", value=5, metadata="by hand")
    try:
        with atomic():
            submit_score(board, EVENT)
        connections[DEFAULT].set_autocommit(False)
        submit_score(board, by_hand)
        before = metadata(observer, board)
        connections[DEFAULT].commit()
    finally:
        connections.close_all()

    assert before == [{"a": [1]}]
    assert metadata(observer, board) == [{"a": [1]}, "by hand"]
