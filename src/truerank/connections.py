"""The connections of both kinds of client to PostgreSQL, and what the driver's errors mean."""

import asyncio
import re
import select
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
import psycopg_pool

from truerank.crowd import FULL, Crowd, Refusals
from truerank.errors import (
    Contended,
    DatabaseFull,
    DatabaseUnavailable,
    InvalidInput,
    NotAllowed,
    SettingsInvalid,
    TruerankError,
)
from truerank.patience import Patience, cut
from truerank.schema.migrate import mismatch_error
from truerank.sessions import (
    AWAY,
    LIMIT_SESSION,
    LIMIT_TRANSACTION,
    SNAPSHOT,
    Limits,
    alive_only,
    primary_only,
)
from truerank.settings import Settings

_CONNECTION_WAIT_S_MAX = 2.0
AFTER_SERVER_S = 2.0  # for the server to end a statement itself
# PostgreSQL's own name for a check of one column.
_CHECK = re.compile(r"(?:board|ranking|award_rule)_(.+?)_check[0-9]*")
CONTENDED = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
# The functions raise these for what a caller wrote wrong.
CALLER_MISTAKES = (
    psycopg.errors.InvalidParameterValue,
    psycopg.errors.InvalidTextRepresentation,
    psycopg.errors.InvalidDatetimeFormat,
    psycopg.errors.DatetimeFieldOverflow,
    psycopg.errors.IntervalFieldOverflow,
    psycopg.errors.NumericValueOutOfRange,
    psycopg.errors.InvalidRowCountInLimitClause,
    psycopg.errors.InvalidRowCountInResultOffsetClause,
)
SCHEMA_ABSENT = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedTable,
)


def urls(settings: Settings) -> tuple[str, str]:
    """Both addresses.

    Raises:
        SettingsInvalid: one of them is not set.
    """
    if settings.database_url is None or settings.redis_url is None:
        raise SettingsInvalid("both database_url and redis_url are needed")
    return settings.database_url, settings.redis_url


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of a `Database`, and whether a pooler stands between it and the server."""

    pooled = False
    asking: psycopg.Cursor[tuple[Any, ...]]  # kept: a new one for each question takes its time

    # One argument more than psycopg's: only the pool calls this, and it always gives it.
    @classmethod
    def connect(cls, conninfo: str = "", *, refusals: Refusals, **kwargs: Any) -> Self:  # type: ignore[override]
        """Connect; note why not."""
        try:
            return super().connect(conninfo, **kwargs)
        except psycopg.OperationalError as exc:
            refusals.append(str(exc))
            raise


class AsyncConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """See `Connection`."""

    pooled = False
    asking: psycopg.AsyncCursor[tuple[Any, ...]]

    # See there for its argument.
    @classmethod
    async def connect(cls, conninfo: str = "", *, refusals: Refusals, **kwargs: Any) -> Self:  # type: ignore[override]
        """Connect; note why not."""
        try:
            return await super().connect(conninfo, **kwargs)
        except psycopg.OperationalError as exc:
            refusals.append(str(exc))
            raise


class Database:
    """The connections of a blocking client: each statement is a transaction, with limits.

    Works through a pooler in transaction mode: nothing is left in a session then. The limits go
    with each statement, in one round trip, and nothing is prepared.

    Args:
        url: of PostgreSQL. A standby is refused, unless the URL itself asks for one.
        settings: of the process.
        application: by this name the server lists the connections.
        lock_ms: how long a statement may wait for a lock.
    """

    def __init__(
        self, url: str, settings: Settings, *, application: str, lock_ms: int | None = None
    ) -> None:
        self._limits = Limits(statement_ms=settings.database_timeout_ms, lock_ms=lock_ms)
        self._limit_s = settings.database_timeout_ms / 1000 + AFTER_SERVER_S
        self._patience = Patience()
        self._refusals: Refusals = deque(maxlen=1)
        self._wait_s = connection_wait_s(settings)
        self._crowd = Crowd(settings.pool_max, self._wait_s)
        self._yielding = threading.Semaphore(self._crowd.yielding_max)
        self._pool = psycopg_pool.ConnectionPool(
            url,
            connection_class=Connection,
            min_size=0,
            max_size=settings.pool_max,
            open=False,
            timeout=self._wait_s,
            kwargs=_connection_kwargs(url, settings, application, self._refusals),
            configure=self._configure,
        )

    def open(self) -> None:
        """Open the pool; connections are made as they are needed."""
        self._pool.open()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        self._patience.close()

    def query(
        self,
        sql: str,
        params: Any,
        limit_s: float | None = None,
        *,
        snapshot: bool = False,
        slow: bool = False,
        yields: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own, committed on return; give its rows.

        Args:
            sql: the statement.
            params: its parameters.
            limit_s: how long to wait for a server that doesn't even end it by itself, in seconds.
            snapshot: run it at REPEATABLE READ, and slow.
            slow: the server, too, takes as long as `limit_s`.
            yields: leave some connections to those who don't.

        Raises:
            DatabaseUnavailable: no connection, or it was lost: then it may have been committed.
            Busy: none became free, of a server that answers.
            TruerankError: see `translate`.
        """
        if not yields:
            return self._query(sql, params, limit_s, snapshot=snapshot, slow=slow)
        if not self._yielding.acquire(timeout=self._wait_s):
            raise self._crowd.no_connection(TimeoutError(FULL), self._refusals, full=True)
        try:
            return self._query(sql, params, limit_s, snapshot=snapshot, slow=slow)
        finally:
            self._yielding.release()

    def _query(
        self, sql: str, params: Any, limit_s: float | None, *, snapshot: bool, slow: bool
    ) -> list[tuple[Any, ...]]:
        try:
            conn = self._borrow()
            self._crowd.lent()
            try:
                with self._patience.limiting(conn, limit_s or self._limit_s):
                    if snapshot or slow:
                        with conn.transaction():
                            if snapshot:
                                conn.execute(SNAPSHOT)
                            conn.execute(LIMIT_TRANSACTION, self._limits.longer(limit_s))
                            return conn.execute(sql, params, binary=True).fetchall()
                    if not conn.pooled:
                        return conn.asking.execute(sql, params).fetchall()
                    # One round trip. Its end alone would commit as well, but psycopg 3.3 garbles
                    # the error of a commit that fails there.
                    with conn.pipeline(), conn.transaction():
                        conn.execute(LIMIT_TRANSACTION, self._limits.of_transaction())
                        cursor = conn.execute(sql, params, binary=True)
                    return cursor.fetchall()
            except psycopg.errors.ReadOnlySqlTransaction:
                # A primary that was demoted keeps its connections: the next one is made anew.
                conn.close()
                raise
            finally:
                self._crowd.returned(answered=not conn.closed)
                # Nothing is open by itself. What an interrupted call left, the pool ends or closes.
                self._pool.putconn(conn)
        except psycopg_pool.PoolTimeout as exc:
            raise self._crowd.no_connection(exc, self._refusals, full=False) from exc
        except (psycopg.Error, UnicodeEncodeError) as exc:
            raise translate(exc) from exc

    def _configure(self, conn: Connection) -> None:
        limited = conn.execute(LIMIT_SESSION, self._limits.of_session(conn)).fetchone()
        conn.pooled = limited is None
        conn.asking = conn.cursor(binary=True)
        self._refusals.clear()
        if conn.pooled:
            conn.prepare_threshold = None

    def _borrow(self) -> Connection:
        # No connection that the server ended while it lay there. The `check` of a pool would cost
        # a round trip each time, and a second's pause for each that it finds ended.
        conn = self._pool.getconn()
        for _ in range(self._pool.max_size):
            if not _is_ended(conn):
                break
            conn.close()
            self._pool.putconn(conn)
            conn = self._pool.getconn()
        return conn


class AsyncDatabase:
    """The connections of an asyncio client; see `Database`."""

    def __init__(
        self, url: str, settings: Settings, *, application: str, lock_ms: int | None = None
    ) -> None:
        self._limits = Limits(statement_ms=settings.database_timeout_ms, lock_ms=lock_ms)
        self._limit_s = settings.database_timeout_ms / 1000 + AFTER_SERVER_S
        self._refusals: Refusals = deque(maxlen=1)
        self._wait_s = connection_wait_s(settings)
        self._crowd = Crowd(settings.pool_max, self._wait_s)
        self._yielding = asyncio.Semaphore(self._crowd.yielding_max)
        self._pool = psycopg_pool.AsyncConnectionPool(
            url,
            connection_class=AsyncConnection,
            min_size=0,
            max_size=settings.pool_max,
            open=False,
            timeout=self._wait_s,
            kwargs=_connection_kwargs(url, settings, application, self._refusals),
            configure=self._configure,
        )

    async def open(self) -> None:
        """Open the pool; connections are made as they are needed."""
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def query(
        self,
        sql: str,
        params: Any,
        limit_s: float | None = None,
        *,
        snapshot: bool = False,
        slow: bool = False,
        yields: bool = False,
    ) -> list[tuple[Any, ...]]:
        """See `Database.query`."""
        if not yields:
            return await self._query(sql, params, limit_s, snapshot=snapshot, slow=slow)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._yielding.acquire()
        except TimeoutError as exc:
            full = TimeoutError(FULL)
            raise self._crowd.no_connection(full, self._refusals, full=True) from exc
        try:
            return await self._query(sql, params, limit_s, snapshot=snapshot, slow=slow)
        finally:
            self._yielding.release()

    async def _query(
        self, sql: str, params: Any, limit_s: float | None, *, snapshot: bool, slow: bool
    ) -> list[tuple[Any, ...]]:
        try:
            conn = await self._borrow()
            self._crowd.lent()
            try:
                with limiting(conn, limit_s or self._limit_s):
                    if snapshot or slow:
                        async with conn.transaction():
                            if snapshot:
                                await conn.execute(SNAPSHOT)
                            await conn.execute(LIMIT_TRANSACTION, self._limits.longer(limit_s))
                            return await (await conn.execute(sql, params, binary=True)).fetchall()
                    if not conn.pooled:
                        return await (await conn.asking.execute(sql, params)).fetchall()
                    async with conn.pipeline(), conn.transaction():
                        await conn.execute(LIMIT_TRANSACTION, self._limits.of_transaction())
                        cursor = await conn.execute(sql, params, binary=True)
                    return await cursor.fetchall()
            except psycopg.errors.ReadOnlySqlTransaction:
                await conn.close()
                raise
            finally:
                self._crowd.returned(answered=not conn.closed)
                await self._pool.putconn(conn)
        except psycopg_pool.PoolTimeout as exc:
            raise self._crowd.no_connection(exc, self._refusals, full=False) from exc
        except (psycopg.Error, UnicodeEncodeError) as exc:
            raise translate(exc) from exc

    async def _configure(self, conn: AsyncConnection) -> None:
        cursor = await conn.execute(LIMIT_SESSION, self._limits.of_session(conn))
        conn.pooled = await cursor.fetchone() is None
        conn.asking = conn.cursor(binary=True)
        self._refusals.clear()
        if conn.pooled:
            conn.prepare_threshold = None

    async def _borrow(self) -> AsyncConnection:
        conn = await self._pool.getconn()
        for _ in range(self._pool.max_size):
            if not _is_ended(conn):
                break
            await conn.close()
            await self._pool.putconn(conn)
            conn = await self._pool.getconn()
        return conn


@contextmanager
def limiting(conn: psycopg.AsyncConnection[Any], limit_s: float) -> Iterator[None]:
    """Cut a connection whose server has not answered within so many seconds."""
    # Not by cancelling: psycopg would first ask the server to cancel, and wait for that.
    handle = asyncio.get_running_loop().call_later(limit_s, cut, conn.fileno())
    try:
        yield
    finally:
        handle.cancel()


def connection_wait_s(settings: Settings) -> float:
    """How long a caller waits for a connection of a pool, in seconds.

    Shorter than a statement may take: reads fall back to what is remembered where it is too long.
    """
    return min(settings.database_timeout_ms / 1000, _CONNECTION_WAIT_S_MAX)


def _connection_kwargs(
    url: str, settings: Settings, application: str, refusals: Refusals
) -> dict[str, Any]:
    # No `options`: poolers refuse or drop them.
    return {
        "autocommit": True,
        "application_name": application,
        "connect_timeout": max(2, settings.database_timeout_ms // 1000),
        "refusals": refusals,
        **alive_only(url),
        **primary_only(url),
    }


def _is_ended(conn: psycopg.BaseConnection[Any]) -> bool:
    # A server says nothing to an idle connection but that it ends.
    if conn.closed:
        return True
    waiting = select.poll()
    waiting.register(conn.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def translate(exc: psycopg.Error | UnicodeEncodeError) -> Exception:
    """The error of this package that a driver's error means."""
    if isinstance(exc, UnicodeEncodeError):
        return InvalidInput("a text contains half a surrogate pair")
    message = exc.diag.message_primary or str(exc)
    if isinstance(exc, psycopg.errors.CheckViolation):
        named = _CHECK.fullmatch(exc.diag.constraint_name or "")
        field = named[1] if named else None
        return InvalidInput(f"{field or 'a setting'} has a value that may not be", field=field)
    for kinds, error in _MEANINGS:
        if isinstance(exc, kinds):
            return error(message)
    if type(exc) is psycopg.DataError and exc.sqlstate is None:
        return InvalidInput(message)  # the driver's own, of text that can't be sent
    return mismatch_error() if _is_schema_absent(exc) else exc


def _is_schema_absent(exc: psycopg.Error) -> bool:
    if isinstance(exc, psycopg.errors.UndefinedFunction):
        # Numbers that callers choose are cast, so one of ours is not found only where it isn't
        # there. An operator, or a function of somebody else, says nothing of the schema.
        return "truerank." in (exc.diag.message_primary or "")
    return isinstance(exc, SCHEMA_ABSENT)


_MEANINGS: tuple[tuple[tuple[type[psycopg.Error], ...], type[TruerankError]], ...] = (
    (CONTENDED, Contended),
    (CALLER_MISTAKES, InvalidInput),
    ((psycopg.errors.InsufficientPrivilege,), NotAllowed),
    ((psycopg.errors.DiskFull,), DatabaseFull),
    (AWAY, DatabaseUnavailable),
)
