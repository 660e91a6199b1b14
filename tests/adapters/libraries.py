"""One face for every library, so that one suite asks all of them the same."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import asyncpg  # type: ignore[import-untyped]  # asyncpg ships no types
import django  # type: ignore[import-untyped]  # Django ships no types
import psycopg
import sqlalchemy
from django.db import connections  # type: ignore[import-untyped]  # as above
from django.db.transaction import atomic  # type: ignore[import-untyped]  # as above
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import truerank
import truerank.adapters.asyncpg
import truerank.adapters.django
import truerank.adapters.sqlalchemy
import truerank.aio
from truerank.model import Receipt, ScoreEvent


class Transaction(Protocol):
    """A transaction of some library that is open."""

    async def submit(self, board: str, event: ScoreEvent, **options: Any) -> Receipt: ...
    async def submit_many(self, board: str, events: Sequence[ScoreEvent]) -> list[Receipt]: ...
    async def execute(self, statement: str) -> Any: ...
    def savepoint(self) -> AbstractAsyncContextManager[Any]: ...


# Opens a transaction at an isolation level; commits at the end of the block, or rolls back.
Open = Callable[[str], AbstractAsyncContextManager[Transaction]]


@dataclass
class Library:
    """One library, and the class it puts around serialization failures."""

    begin: Open
    serialization_failure: type[Exception]


@dataclass
class OfAsync:
    """A transaction of a library for asyncio."""

    conn: Any
    execute_: Callable[[str], Awaitable[Any]]
    savepoint_: Callable[[], AbstractAsyncContextManager[Any]]
    submit_score: Callable[..., Awaitable[Receipt]]
    submit_scores: Callable[..., Awaitable[list[Receipt]]]

    async def submit(self, board: str, event: ScoreEvent, **options: Any) -> Receipt:
        return await self.submit_score(self.conn, board, event, **options)

    async def submit_many(self, board: str, events: Sequence[ScoreEvent]) -> list[Receipt]:
        return await self.submit_scores(self.conn, board, events)

    async def execute(self, statement: str) -> Any:
        return await self.execute_(statement)

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        return self.savepoint_()


@dataclass
class OfThread:
    """A transaction of a blocking library, in a thread of its own."""

    run: Callable[..., Awaitable[Any]]
    execute_: Callable[[str], Any]
    savepoint_: Callable[[], AbstractContextManager[Any]]
    submit_score: Callable[..., Receipt]
    submit_scores: Callable[..., list[Receipt]]

    async def submit(self, board: str, event: ScoreEvent, **options: Any) -> Receipt:
        receipt: Receipt = await self.run(partial(self.submit_score, board, event, **options))
        return receipt

    async def submit_many(self, board: str, events: Sequence[ScoreEvent]) -> list[Receipt]:
        found: list[Receipt] = await self.run(self.submit_scores, board, events)
        return found

    async def execute(self, statement: str) -> Any:
        return await self.run(self.execute_, statement)

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        return _across(self.run, self.savepoint_())


# What a blocking library gives: execute, savepoint, submit_score, submit_scores.
Parts = tuple[
    Callable[[str], Any],
    Callable[[], AbstractContextManager[Any]],
    Callable[..., Receipt],
    Callable[..., list[Receipt]],
]


@asynccontextmanager
async def _across(
    run: Callable[..., Awaitable[Any]], manager: AbstractContextManager[Any]
) -> AsyncIterator[Any]:
    entered = await run(manager.__enter__)
    try:
        yield entered
    except BaseException as exc:
        if not await run(manager.__exit__, type(exc), exc, exc.__traceback__):
            raise
    else:
        await run(manager.__exit__, None, None, None)


def _in_thread(begin: Callable[[str], AbstractContextManager[Parts]]) -> Open:
    @asynccontextmanager
    async def open_(isolation: str) -> AsyncIterator[Transaction]:
        # One thread for each transaction: Django's connections belong to their threads.
        with ThreadPoolExecutor(1) as thread:
            run = partial(asyncio.get_running_loop().run_in_executor, thread)
            async with _across(run, begin(isolation)) as parts:
                yield OfThread(run, *parts)

    return open_


def _psycopg(url: str) -> Library:
    @contextmanager
    def begin(isolation: str) -> Iterator[Parts]:
        with psycopg.connect(url) as conn:
            conn.isolation_level = psycopg_level(isolation)
            yield (
                conn.execute,
                conn.transaction,
                partial(truerank.submit_score, conn),
                partial(truerank.submit_scores, conn),
            )

    return Library(_in_thread(begin), psycopg.errors.SerializationFailure)


def _psycopg_async(url: str) -> Library:
    @asynccontextmanager
    async def begin(isolation: str) -> AsyncIterator[Transaction]:
        async with await psycopg.AsyncConnection.connect(url) as conn:
            await conn.set_isolation_level(psycopg_level(isolation))
            yield OfAsync(
                conn,
                conn.execute,
                conn.transaction,
                truerank.aio.submit_score,
                truerank.aio.submit_scores,
            )

    return Library(begin, psycopg.errors.SerializationFailure)


def _asyncpg(url: str) -> Library:
    adapter = truerank.adapters.asyncpg

    @asynccontextmanager
    async def begin(isolation: str) -> AsyncIterator[Transaction]:
        conn = await asyncpg.connect(url)
        try:
            async with conn.transaction(isolation=isolation.replace(" ", "_")):
                yield OfAsync(
                    conn,
                    conn.execute,
                    conn.transaction,
                    adapter.submit_score,
                    adapter.submit_scores,
                )
        finally:
            await conn.close()

    return Library(begin, asyncpg.SerializationError)


def _sqlalchemy(kind: type[sqlalchemy.Connection | Session], url: str) -> Library:
    adapter = truerank.adapters.sqlalchemy

    @contextmanager
    def begin(isolation: str) -> Iterator[Parts]:
        engine = sqlalchemy.create_engine(
            with_driver(url, "psycopg"), isolation_level=isolation.upper()
        )
        try:
            with kind(engine) as conn, conn.begin():
                yield (
                    lambda statement: conn.execute(sqlalchemy.text(statement)),
                    conn.begin_nested,
                    partial(adapter.submit_score, conn),
                    partial(adapter.submit_scores, conn),
                )
        finally:
            engine.dispose()

    return Library(_in_thread(begin), sqlalchemy.exc.OperationalError)


def _sqlalchemy_async(kind: type[AsyncConnection | AsyncSession], driver: str, url: str) -> Library:
    adapter = truerank.adapters.sqlalchemy

    @asynccontextmanager
    async def begin(isolation: str) -> AsyncIterator[Transaction]:
        engine = create_async_engine(with_driver(url, driver), isolation_level=isolation.upper())
        try:
            async with kind(engine) as conn, conn.begin():
                yield OfAsync(
                    conn,
                    lambda statement: conn.execute(sqlalchemy.text(statement)),
                    conn.begin_nested,
                    adapter.submit_score_async,
                    adapter.submit_scores_async,
                )
        finally:
            await engine.dispose()

    return Library(begin, sqlalchemy.exc.DBAPIError)


def _django(_: str) -> Library:
    adapter = truerank.adapters.django

    @contextmanager
    def begin(isolation: str) -> Iterator[Parts]:
        def execute(statement: str) -> None:
            with connections[isolation].cursor() as cursor:
                cursor.execute(statement)

        try:
            with atomic(using=isolation):
                yield (
                    execute,
                    partial(atomic, using=isolation),
                    partial(adapter.submit_score, using=isolation),
                    partial(adapter.submit_scores, using=isolation),
                )
        finally:
            connections.close_all()

    return Library(_in_thread(begin), django.db.OperationalError)


LIBRARIES: dict[str, Callable[[str], Library]] = {
    "psycopg": _psycopg,
    "psycopg async": _psycopg_async,
    "asyncpg": _asyncpg,
    "sqlalchemy Connection": partial(_sqlalchemy, sqlalchemy.Connection),
    "sqlalchemy Session": partial(_sqlalchemy, Session),
    "sqlalchemy AsyncConnection psycopg": partial(_sqlalchemy_async, AsyncConnection, "psycopg"),
    "sqlalchemy AsyncConnection asyncpg": partial(_sqlalchemy_async, AsyncConnection, "asyncpg"),
    "sqlalchemy AsyncSession psycopg": partial(_sqlalchemy_async, AsyncSession, "psycopg"),
    "sqlalchemy AsyncSession asyncpg": partial(_sqlalchemy_async, AsyncSession, "asyncpg"),
    "django": _django,
}


def psycopg_level(isolation: str) -> psycopg.IsolationLevel:
    return psycopg.IsolationLevel[isolation.upper().replace(" ", "_")]


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql:", f"postgresql+{driver}:")


def sqlstate(error: BaseException) -> Any:
    """The SQLSTATE of a driver's error, or of the one that SQLAlchemy or Django wrapped."""
    wrapped = getattr(error, "orig", None) or error.__cause__
    return getattr(error, "sqlstate", None) or getattr(wrapped, "sqlstate", None)
